//! The way to an API server, and one that stands still. Not knowing is never evidence of an outage.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::proxy::ProxyMode;
use testbed::{ShootCluster, ShootPlan, own_scenario, scenario};
use tokio::time::Instant;

use crate::credentials::failures;
use crate::{UP, goes_down, healthy};

/// Twice the grace: every lease would have been expired for long.
const LONG: Duration = Duration::from_secs(12);
/// Two in a row differ in what the prober finds: its log has a line only where that changes.
const WAYS: [ProxyMode; 4] = [
    ProxyMode::Refused,
    ProxyMode::Stalled,
    ProxyMode::Reset,
    ProxyMode::HalfOpen,
];

/// The prober's way is lost in one way after the other; a probe meets each, and nothing is written.
async fn out_of_reach(shoot: &ShootCluster, ways: &[ProxyMode]) -> Result<()> {
    let begin = shoot.history().len();
    for way in ways {
        let before = failures(shoot).len();
        shoot.proxy.set(*way);
        shoot
            .eventually(&format!("a probe that fails: {way:?}"), async || {
                let more = failures(shoot).len() - before;
                ensure!(more > 0, "none");
                Ok(())
            })
            .await?;
        shoot
            .untouched_since(begin)
            .with_context(|| format!("{way:?}"))?;
    }
    Ok(())
}

#[test]
fn an_api_server_that_cannot_be_reached_is_no_outage() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "unreachable", ShootPlan::default()).await?;
        let begin = shoot.history().len();
        // Neither the prober nor the nodes reach the API server, and then both do: nothing was an
        // outage.
        out_of_reach(&shoot, &WAYS[..1]).await?;
        shoot.nodes.cut_all();
        shoot.leases_older_than(LONG).await?;
        out_of_reach(&shoot, &WAYS[1..]).await?;
        shoot.nodes.heal_all();
        shoot.leases_younger_than(Duration::from_secs(3)).await?;
        shoot.proxy.set(ProxyMode::Open);
        shoot.after_probes(3).await?;
        shoot.untouched_since(begin)?;

        // And an outage in which the prober loses its way as well changes nothing in either
        // direction.
        goes_down(&shoot).await?;
        let begin = shoot.history().len();
        out_of_reach(&shoot, &WAYS[..1]).await?;
        shoot.nodes.heal_all();
        shoot.leases_younger_than(Duration::from_secs(3)).await?;
        out_of_reach(&shoot, &WAYS[1..]).await?;
        shoot.untouched_since(begin)?;
        shoot.proxy.set(ProxyMode::Open);
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn an_api_server_that_stands_still_is_no_outage() -> Result<()> {
    own_scenario("needs an API server that may be stopped", async |bed| {
        let shoot = healthy(bed, "server-stands", ShootPlan::default()).await?;
        let server = shoot.plane.server().context("own")?.process();
        let since = Instant::now();
        // Nobody reaches it: neither the prober, nor the nodes, nor a controller that could give
        // them up.
        server.signal(Signal::SIGSTOP)?;
        shoot
            .eventually("a long stop", async || {
                ensure!(since.elapsed() > LONG, "{:?}", since.elapsed());
                Ok(())
            })
            .await?;
        server.signal(Signal::SIGCONT)?;
        shoot.leases_younger_than(Duration::from_secs(3)).await?;
        shoot.after_probes(3).await?;
        // Its first answers tell of old leases: whatever was done about them is undone.
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}
