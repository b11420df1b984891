//! The NetworkPolicies of the agents, enforced on the seed's machine by nftables: no network plugin
//! of Debian's does it.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::KubeApi;
use testbed::gardener::GARDEN;
use testbed::objects::items;
use tokio::sync::watch;

use crate::installation::PODS;
use crate::machine::NodeMachine;
use crate::world::NodeWorld;

/// Enforces them as they are now, for whichever pods they select, until the process ends.
pub async fn enforce(world: &'static NodeWorld) -> Result<()> {
    let (api, machine) = (world.seed.api(), &world.seed_machine);
    let policies = format!("/apis/networking.k8s.io/v1/namespaces/{GARDEN}/networkpolicies");
    let policies = api.list(&policies).await?;
    anyhow::ensure!(policies.len() == 2, "{} policies", policies.len());
    apply(api, machine, &policies).await?;
    let (changed, mut changes) = watch::channel(());
    tokio::spawn(api.keep_following(PODS, move |_| {
        changed.send_replace(());
    }));
    tokio::spawn(async move {
        // A policy holds for a new pod a moment after its start, as with other network plugins.
        while changes.changed().await.is_ok() {
            let _ = apply(api, machine, &policies).await;
        }
    });
    Ok(())
}

/// What no connection may be begun to, by the addresses of the pods that each policy selects.
/// Whatever comes from the machine itself, such as its kubelet's probes, is not forwarded, and so
/// not asked.
async fn apply(api: &KubeApi, machine: &NodeMachine, policies: &[Value]) -> Result<()> {
    let mut chain = String::new();
    for policy in policies {
        let app = policy["spec"]["podSelector"]["matchLabels"]["app"].as_str();
        let app = app.context("no label app")?;
        let pods = api
            .list(&format!("{PODS}?labelSelector=app%3D{app}"))
            .await?;
        let pods = pods
            .iter()
            .filter_map(|pod| pod["status"]["podIP"].as_str());
        let pods = Vec::from_iter(pods).join(", ");
        for (side, address) in [("ingress", "daddr"), ("egress", "saddr")] {
            for (protocol, begins) in [("TCP", "tcp flags & (syn | ack) == syn"), ("UDP", "")] {
                let others = match ports(&policy["spec"][side], protocol).as_str() {
                    "" => String::new(),
                    ports => format!("th dport != {{ {ports} }}"),
                };
                let protocol = protocol.to_lowercase();
                // The braces of a set may not be empty.
                chain += &format!(
                    "ip {address} {{ 0.0.0.0, {pods} }} meta l4proto {protocol} {others} {begins} drop\n"
                );
            }
        }
    }
    for family in ["inet", "bridge"] {
        let table = format!("table {family} policies");
        let rules = format!(
            "{table} {{}}\ndelete {table}\n{table} {{\nchain forward {{\n\
             type filter hook forward priority 0;\n{chain}}}\n}}\n"
        );
        machine.run(&["nft", &rules]).await?;
    }
    Ok(())
}

/// The ports that a policy's rules let through.
fn ports(rules: &Value, protocol: &str) -> String {
    let ports = items(rules).flat_map(|rule| items(&rule["ports"]));
    let ports = ports.filter(|port| port["protocol"] == protocol);
    let ports: BTreeSet<String> = ports.map(|port| port["port"].to_string()).collect();
    Vec::from_iter(ports).join(", ")
}
