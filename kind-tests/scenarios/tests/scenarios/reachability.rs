//! The way to an API server, and one that stands still. Not knowing is never evidence of an outage.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::relay::Path;
use testbed::shoot::PATIENCE;
use testbed::{Bed, ShootPlan, own_scenario, scenario};
use tokio::time::Instant;

use crate::{DOWN, PATIENT, UP, alone, end_alone, goes_down, healthy, with_args};

/// Twice the grace: every lease would have been expired for long.
const LONG: Duration = Duration::from_secs(12);

/// Neither the prober nor the nodes reach the API server, and then both do: nothing was an outage.
async fn unreachable(bed: &'static Bed, name: &str, path: Path) -> Result<()> {
    let shoot = healthy(bed, name, ShootPlan::default()).await?;
    let begin = shoot.history().len();
    shoot.relay.set(path);
    shoot.nodes.cut_all();
    shoot.leases_older_than(LONG).await?;
    shoot.untouched_since(begin)?;
    shoot.nodes.heal_all();
    shoot.leases_younger_than(Duration::from_secs(3)).await?;
    shoot.relay.set(Path::Open);
    shoot.after_probes(3).await?;
    shoot.untouched_since(begin)?;

    // And an outage in which the prober loses its way as well changes nothing in either direction.
    goes_down(&shoot).await?;
    shoot.relay.set(path);
    let begin = shoot.history().len();
    shoot.nodes.heal_all();
    shoot.leases_younger_than(Duration::from_secs(3)).await?;
    shoot.relay.set(Path::Open);
    shoot.free_at(&UP).await?;
    ensure!(shoot.history().len() > begin);
    shoot.end().await
}

#[test]
fn an_api_server_that_refuses_connections_is_no_outage() -> Result<()> {
    scenario(async |bed| unreachable(bed, "refused", Path::Refused).await)
}

#[test]
fn an_api_server_behind_a_stalled_path_is_no_outage() -> Result<()> {
    scenario(async |bed| unreachable(bed, "stalled", Path::Stalled).await)
}

#[test]
fn an_api_server_whose_connections_are_reset_is_no_outage() -> Result<()> {
    scenario(async |bed| unreachable(bed, "reset", Path::Reset).await)
}

#[test]
fn an_api_server_whose_answers_are_lost_is_no_outage() -> Result<()> {
    scenario(async |bed| unreachable(bed, "half-open", Path::HalfOpen).await)
}

#[test]
fn a_seed_that_stands_still_for_a_while_is_caught_up_with() -> Result<()> {
    own_scenario("needs an API server that may be stopped", async |bed| {
        let (shoot, prober) = alone(bed, "seed-stands", ShootPlan::default(), with_args(&PATIENT)).await?;
        let begin = shoot.history().len();
        let server = shoot.seed.plane().server().context("own")?.process();
        // An outage falls into the time in which nothing can be written,
        server.signal(Signal::SIGSTOP)?;
        shoot.nodes.cut_all();
        shoot.leases_older_than(Duration::from_secs(8)).await?;
        shoot.untouched_since(begin)?;
        server.signal(Signal::SIGCONT)?;
        shoot.held_down(&DOWN).await?;
        // and so does the end of one.
        server.signal(Signal::SIGSTOP)?;
        shoot.nodes.heal_all();
        shoot.leases_younger_than(Duration::from_secs(3)).await?;
        shoot.after_probes(3).await?;
        server.signal(Signal::SIGCONT)?;
        shoot.free_at(&UP).await?;
        end_alone(bed, shoot, prober).await
    })
}

#[test]
fn an_api_server_that_stands_still_is_no_outage() -> Result<()> {
    own_scenario("needs an API server that may be stopped", async |bed| {
        let shoot = healthy(bed, "server-stands", ShootPlan::default()).await?;
        let server = shoot.plane.server().context("own")?.process();
        let since = Instant::now();
        // Nobody reaches it: neither the prober, nor the nodes, nor a controller that could give them up.
        server.signal(Signal::SIGSTOP)?;
        shoot
            .eventually("a long stop", PATIENCE, async || {
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
