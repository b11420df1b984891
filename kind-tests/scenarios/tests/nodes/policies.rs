//! The NetworkPolicies of the agents, enforced on the seed's machine by nftables: no network plugin
//! of Debian's does it.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::KubeApi;
use testbed::gardener::GARDEN;
use testbed::objects::items;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::machine::NodeMachine;
use crate::world::NodeWorld;

/// What enforces them.
pub struct Policies {
    _tasks: [JoinHandle<()>; 2],
}

impl Policies {
    /// Enforces them as they are now, for whichever pods they select, until the process ends.
    pub async fn enforce(world: &'static NodeWorld) -> Result<Self> {
        let api = world.seed.api();
        let policies = format!("/apis/networking.k8s.io/v1/namespaces/{GARDEN}/networkpolicies");
        let policies = api.list(&policies).await?;
        anyhow::ensure!(policies.len() == 2, "{} policies", policies.len());
        let mut table = String::new();
        for family in ["inet", "bridge"] {
            write!(
                table,
                "table {family} policies {{\n{}}}\n",
                rules(&policies)?
            )?;
        }
        nft(&world.seed_machine, &table).await?;
        select(api, &world.seed_machine, &policies).await?;
        let (changed, mut changes) = watch::channel(());
        let follow = async move {
            let pods = format!("/api/v1/namespaces/{GARDEN}/pods");
            api.keep_following(&pods, |_| changed.send_replace(()))
                .await;
        };
        let enforce = async move {
            // A policy holds for a new pod a moment after its start, as with other network plugins.
            while changes.changed().await.is_ok() {
                let _ = select(api, &world.seed_machine, &policies).await;
            }
        };
        Ok(Self {
            _tasks: [tokio::spawn(follow), tokio::spawn(enforce)],
        })
    }
}

/// The sets of the selected pods' addresses, and what no connection may be begun to. Whatever comes
/// from the machine itself, such as its kubelet's probes, is not forwarded, and so not asked.
fn rules(policies: &[Value]) -> Result<String> {
    let (mut sets, mut chain) = (String::new(), String::new());
    for (index, policy) in policies.iter().enumerate() {
        writeln!(sets, "set pods{index} {{ type ipv4_addr; }}")?;
        for (side, address) in [("ingress", "daddr"), ("egress", "saddr")] {
            for protocol in ["TCP", "UDP"] {
                let ports = ports(&policy["spec"][side], protocol);
                let others = if ports.is_empty() {
                    String::new()
                } else {
                    format!("th dport != {{ {} }}", ports.join(", "))
                };
                let begins = if protocol == "TCP" {
                    "tcp flags & (syn | ack) == syn"
                } else {
                    ""
                };
                writeln!(
                    chain,
                    "ip {address} @pods{index} meta l4proto {} {others} {begins} drop",
                    protocol.to_lowercase()
                )?;
            }
        }
    }
    Ok(format!(
        "{sets}chain forward {{\ntype filter hook forward priority 0;\n{chain}}}\n"
    ))
}

/// The ports that a policy's rules let through.
fn ports(rules: &Value, protocol: &str) -> Vec<String> {
    let ports = items(rules).flat_map(|rule| items(&rule["ports"]));
    let ports = ports.filter(|port| port["protocol"] == protocol);
    let ports: BTreeSet<String> = ports.map(|port| port["port"].to_string()).collect();
    ports.into_iter().collect()
}

/// Puts the addresses of the pods that each policy selects into its sets.
async fn select(api: &KubeApi, machine: &NodeMachine, policies: &[Value]) -> Result<()> {
    let mut commands = String::new();
    for (index, policy) in policies.iter().enumerate() {
        let app = policy["spec"]["podSelector"]["matchLabels"]["app"]
            .as_str()
            .context("no label app")?;
        let pods = format!("/api/v1/namespaces/{GARDEN}/pods?labelSelector=app%3D{app}");
        let pods = api.list(&pods).await?;
        let addresses: Vec<&str> = pods
            .iter()
            .filter_map(|pod| pod["status"]["podIP"].as_str())
            .collect();
        for family in ["inet", "bridge"] {
            writeln!(commands, "flush set {family} policies pods{index}")?;
            if !addresses.is_empty() {
                writeln!(
                    commands,
                    "add element {family} policies pods{index} {{ {} }}",
                    addresses.join(", ")
                )?;
            }
        }
    }
    nft(machine, &commands).await
}

async fn nft(machine: &NodeMachine, commands: &str) -> Result<()> {
    machine.run(&["nft", commands]).await.map(drop)
}
