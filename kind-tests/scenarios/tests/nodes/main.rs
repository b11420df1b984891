//! The image, the chart and the agents on real kubelets: pods in containers, on machines in name
//! spaces of their own.
//!
//! ```text
//!   this process, etcd, API servers of the seed and of two shoots, the seed's kube-controller-manager and scheduler
//!      |
//!   bridge -- veth -- machine "seed": containerd, kubelet, kube-proxy; the agents, the shoots' controllers, what the weeder sees
//!      |----- veth -- machines "w1" to "w3": containerd, kubelet; the nodes of the shoot that the watchdog protects
//!      '----- veth -- machines "u1", "u2": the same, of a shoot that it does not know
//! ```
//! `kind-tests/nodes/run` gives the suite name spaces of its own, with which everything ends.

mod commands;
mod images;
mod installation;
mod machine;
mod outages;
mod policies;
mod renewals;
mod shoot;
mod weeding;
mod workloads;
mod world;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use testbed::gardener::{CA, GARDEN, PROBE_USER, PROBER_USER, WEEDER_USER};
use testbed::{eventually, scenario};

use crate::commands::run;
use crate::installation::{AGENTS, installed, leader};
use crate::outages::{ProberChange, outage};
use crate::renewals::ObservedRenewals;
use crate::weeding::{CrashShape, Weeded, weeded};
use crate::world::NodeWorld;

#[test]
fn image_repeats_and_holds_no_shell() -> Result<()> {
    scenario(async |bed| {
        let [first, second] = images::product()?;
        let digests = [
            images::digest(&first).await?,
            images::digest(&second).await?,
        ];
        ensure!(
            digests[0] == digests[1],
            "two builds of the same sources: {digests:?}"
        );
        println!(
            "image {}, {:.1} MB",
            digests[0],
            std::fs::metadata(first)?.len() as f64 / 1e6
        );

        let world = NodeWorld::get(bed).await?;
        installed(world).await?;
        let pod = leader(world, AGENTS[0]).await?;
        let shell = format!("--namespace {GARDEN} exec {pod} -- sh -c true");
        let shell = world.kubectl(&shell).await;
        ensure!(
            shell.is_err_and(|error| error.to_string().contains("executable file not found")),
            "there is a shell"
        );
        let processes = run("pgrep --exact dependency-watc").await?;
        let process = processes.lines().next().context("no agent runs")?;
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        ensure!(
            status.contains("Uid:\t65532\t65532") && status.contains("CapEff:\t0000000000000000"),
            "{status}"
        );
        let mounts = std::fs::read_to_string(format!("/proc/{process}/mountinfo"))?;
        ensure!(
            mounts.lines().any(|mount| mount.contains(" / / ro")),
            "{mounts}"
        );
        let certificates = std::fs::read_to_string(format!(
            "/proc/{process}/root/etc/ssl/certs/ca-certificates.crt"
        ))?;
        ensure!(
            certificates.contains("BEGIN CERTIFICATE"),
            "no certificates"
        );
        Ok(())
    })
}

#[test]
fn policies_let_through_what_is_needed() -> Result<()> {
    scenario(async |bed| {
        let world = NodeWorld::get(bed).await?;
        installed(world).await?;
        let pods = world.seed.api().list(&installation::pods()).await?;
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
        let (installation, _) = installed(world).await?;
        let marks = [&world.seed, &world.shoot.plane].map(|plane| plane.mark());
        let mut beside = Some(&world.unprotected);
        for change in [
            ProberChange::LeaderKilled,
            ProberChange::Restarted,
            ProberChange::Upgraded,
        ] {
            outage(world, installation, change, beside.take()).await?;
        }
        let asked = [
            world.seed.asked_by(PROBER_USER, &marks[0]),
            world.seed.asked_by(WEEDER_USER, &marks[0]),
            world.shoot.plane.asked_by(PROBE_USER, &marks[1]),
        ]
        .concat();
        let refused: Vec<_> = asked
            .iter()
            .filter(|asked| [401, 403].contains(&asked.code))
            .collect();
        ensure!(
            !asked.is_empty() && refused.is_empty(),
            "{} requests, refused: {refused:?}",
            asked.len()
        );
        Ok(())
    })
}

#[test]
fn pods_do_not_wait_for_their_back_off() -> Result<()> {
    scenario(async |bed| {
        let world = NodeWorld::get(bed).await?;
        installed(world).await?;
        let all = CrashShape::ALL.map(async |shape| -> Result<()> {
            let weeded = weeded(world.seed.api(), shape)
                .await
                .with_context(|| format!("{shape:?}"))?;
            let (goal, Weeded { ended, with, without }) = (weeded.goal(), weeded);
            println!(
                "{shape:?}: ended {ended:.1?} before the Service, ready {with:.1?} after it, {without:.1?} without the weeder"
            );
            ensure!(with <= goal, "{shape:?}: {with:?}, more than {goal:?}");
            ensure!(without > 3 * with, "{shape:?}: {with:?}, {without:?}");
            Ok(())
        });
        try_join_all(all).await.map(drop)
    })
}

#[test]
fn kubelets_renew_every_ten_seconds() -> Result<()> {
    scenario(async |bed| {
        let world = NodeWorld::get(bed).await?;
        let [seed, spare] =
            [world.seed.api(), world.unprotected.plane.api()].map(ObservedRenewals::of);
        let after = async |renewals: &ObservedRenewals, node: &str, count: usize| {
            let spacings = eventually("there are renewals", async || {
                let spacings = renewals.spacings(node);
                ensure!(spacings.len() >= count, "{spacings:.1?}");
                Ok(spacings)
            });
            spacings.await
        };
        for count in [2, 5, 8] {
            after(&spare, world.spare.name(), count).await?;
            world
                .spare
                .run(&["pkill", "-KILL", "-x", "kubelet"])
                .await?;
        }
        // All pods are on the seed's machine.
        for (what, renewals, node) in [
            ("under load", seed, world.seed_machine.name()),
            ("with three restarts", spare, world.spare.name()),
        ] {
            let spacings = after(&renewals, node, 15).await?;
            println!("{what}, seconds between two renewals: {spacings:.1?}");
            ensure!(
                spacings.iter().all(|spacing| *spacing < 20.0),
                "{what}: {spacings:?}"
            );
        }
        Ok(())
    })
}
