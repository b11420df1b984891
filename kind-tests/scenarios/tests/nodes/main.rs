//! The image, the chart and the agents on real kubelets: pods in containers, on machines in name
//! spaces of their own.
//!
//! ```text
//!   this process, etcd, API servers of the seed and of the shoot, the seed's kube-controller-manager and scheduler
//!      |
//!   bridge -- veth -- machine "seed": containerd, kubelet, kube-proxy; the agents, the shoot's controllers, what the weeder sees
//!      '----- veth -- machines "w1" to "w3": containerd, kubelet; the nodes of the shoot that the watchdog protects
//! ```
//! `kind-tests/nodes/run` gives the suite name spaces of its own, with which everything ends.

mod commands;
mod images;
mod installation;
mod machine;
mod outages;
mod policies;
mod shoot;
mod weeding;
mod workloads;
mod world;

use anyhow::{Context, Result, ensure};
use testbed::gardener::{CA, GARDEN, PROBE_USER, PROBER_USER, WEEDER_USER};
use testbed::scenario;

use crate::commands::shell;
use crate::installation::{AGENTS, PODS, installed, leader};
use crate::outages::{ProberChange, outage};
use crate::weeding::weeded;
use crate::world::NodeWorld;

#[test]
fn image_holds_no_shell() -> Result<()> {
    scenario(async |bed| {
        let world = NodeWorld::get(bed).await?;
        installed(world).await?;
        let pod = leader(world, AGENTS[0]).await?;
        let exec = format!("--namespace {GARDEN} exec {pod} -- sh -c true");
        let ran = world.kubectl(&exec).await;
        let none = |error: anyhow::Error| error.to_string().contains("executable file not found");
        ensure!(ran.is_err_and(none), "there is a shell");
        let processes = shell("pgrep --exact dependency-watc").await?;
        let process = processes.lines().next().context("no agent runs")?;
        for (file, expected) in [
            ("status", "Uid:\t65532\t65532"),
            ("status", "CapEff:\t0000000000000000"),
            ("mountinfo", " / / ro"),
            (
                "root/etc/ssl/certs/ca-certificates.crt",
                "BEGIN CERTIFICATE",
            ),
        ] {
            let text = std::fs::read_to_string(format!("/proc/{process}/{file}"))?;
            ensure!(
                text.contains(expected),
                "{file} has no {expected:?}: {text}"
            );
        }
        Ok(())
    })
}

#[test]
fn policies_let_through_what_is_needed() -> Result<()> {
    scenario(async |bed| {
        let world = NodeWorld::get(bed).await?;
        installed(world).await?;
        let pods = world.seed.api().list(PODS).await?;
        let address = pods[0]["status"]["podIP"].as_str().context("no address")?;
        let stranger = format!("--namespace {} exec deployment/{CA}", world.shoot.namespace);
        let asks = async |port: u16| {
            let nc = format!("{stranger} -- nc -w 2 {address} {port} -e /bin/true");
            world.kubectl(&nc).await.is_ok()
        };
        ensure!(asks(9643).await, "metrics cannot be read");
        ensure!(!asks(9644).await, "another pod reaches the health port");
        Ok(())
    })
}

#[test]
fn no_node_and_no_endpoint_is_lost() -> Result<()> {
    scenario(async |bed| {
        let world = NodeWorld::get(bed).await?;
        installed(world).await?;
        let marks = [&world.seed, &world.shoot.plane].map(|plane| plane.mark());
        for change in [ProberChange::LeaderKilled, ProberChange::Restarted] {
            outage(world, change).await?;
        }
        let mut refused = [
            world.seed.asked_by(PROBER_USER, &marks[0]),
            world.seed.asked_by(WEEDER_USER, &marks[0]),
            world.shoot.plane.asked_by(PROBE_USER, &marks[1]),
        ]
        .concat();
        ensure!(!refused.is_empty(), "no requests");
        refused.retain(|asked| [401, 403].contains(&asked.code));
        ensure!(refused.is_empty(), "{refused:#?}");
        Ok(())
    })
}

#[test]
fn pods_do_not_wait_for_their_back_off() -> Result<()> {
    scenario(async |bed| {
        let world = NodeWorld::get(bed).await?;
        installed(world).await?;
        weeded(world.seed.api()).await
    })
}
