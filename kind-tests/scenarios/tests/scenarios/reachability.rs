//! The way to the shoot's API server, and an API server in trouble. Not knowing is never evidence of an outage.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::api::{Fault, MemoryApi, Options, When};
use testbed::relay::Path;
use testbed::shoot::PATIENCE;
use testbed::{Bed, Prober, ProberConfig, Shoot, ShootPlan, own_scenario, scenario};
use tokio::time::Instant;

use crate::{DOWN, UP, healthy};

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
    shoot.nodes.cut_all();
    shoot.held_down(&DOWN).await?;
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
fn a_kept_connection_that_dies_costs_a_new_one_and_no_verdict() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "kept-dies", ShootPlan::default()).await?;
        let begin = shoot.history().len();
        let connections = shoot.relay.connections();
        for _ in 0..3 {
            shoot.relay.cut();
            shoot.after_probes(2).await?;
        }
        let more = shoot.relay.connections() - connections;
        ensure!(more == 3, "{more} new connections\n{}", shoot.story());
        shoot.untouched_since(begin)?;
        shoot.end().await
    })
}

/// An API server answers every request like this, while nodes are cut off. Returns how often it was asked, and in what time.
async fn in_trouble(bed: &'static Bed, name: &str, trouble: Fault) -> Result<(u64, Duration)> {
    let shoot = healthy(bed, name, ShootPlan::default()).await?;
    let server = MemoryApi::start(bed.authority().await?, Options::default()).await?;
    server.faults().add(When::any(), trouble);
    let begin = shoot.history().len();
    shoot.relay.redirect(server.address());
    let since = Instant::now();
    shoot.nodes.cut_all();
    shoot.leases_older_than(LONG).await?;
    shoot
        .eventually("a request has met the trouble", PATIENCE, async || {
            ensure!(server.requests().total() > 0, "none");
            Ok(())
        })
        .await?;
    let asked = (server.requests().total(), since.elapsed());
    shoot.untouched_since(begin)?;
    shoot.relay.redirect(shoot.plane.address());
    shoot.held_down(&DOWN).await?;

    // The way back is no more taken on such an answer than the way down.
    shoot.relay.redirect(server.address());
    let (before, begin) = (server.requests().total(), shoot.history().len());
    shoot.nodes.heal_all();
    shoot
        .eventually("more requests have met the trouble", PATIENCE, async || {
            ensure!(server.requests().total() > before + 1, "{}", server.requests().total() - before);
            Ok(())
        })
        .await?;
    shoot.untouched_since(begin)?;
    shoot.relay.redirect(shoot.plane.address());
    shoot.free_at(&UP).await?;
    shoot.end().await?;
    Ok(asked)
}

fn needs_own_shoots(bed: &Bed) -> bool {
    if bed.is_given() {
        eprintln!("skipped: the stand-in's certificate is not one of the given cluster's authority");
    }
    bed.is_given()
}

#[test]
fn an_api_server_that_answers_401_changes_nothing() -> Result<()> {
    scenario(async |bed| if needs_own_shoots(bed) { Ok(()) } else { in_trouble(bed, "s401", Fault::status(401)).await.map(drop) })
}

#[test]
fn an_api_server_that_answers_403_changes_nothing() -> Result<()> {
    scenario(async |bed| if needs_own_shoots(bed) { Ok(()) } else { in_trouble(bed, "s403", Fault::status(403)).await.map(drop) })
}

#[test]
fn an_api_server_that_answers_500_changes_nothing() -> Result<()> {
    scenario(async |bed| if needs_own_shoots(bed) { Ok(()) } else { in_trouble(bed, "s500", Fault::status(500)).await.map(drop) })
}

#[test]
fn an_api_server_that_answers_429_changes_nothing_and_gets_the_pause_it_asks_for() -> Result<()> {
    scenario(async |bed| {
        if needs_own_shoots(bed) {
            return Ok(());
        }
        let (requests, time) = in_trouble(bed, "s429", Fault::throttle(4)).await?;
        let most = 1 + time.as_secs() / 4;
        ensure!(requests <= most, "{requests} requests in {time:?}, where {most} are in order");
        Ok(())
    })
}

#[test]
fn rights_that_were_taken_away_change_nothing() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "no-rights", ShootPlan { forbidden: true, ..ShootPlan::default() }).await?;
        let begin = shoot.history().len();
        let binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-node-lease/rolebindings/\
                       gardener.cloud:target:dependency-watchdog";
        shoot.plane.api().delete(binding).await?;
        shoot.nodes.cut_all();
        shoot.leases_older_than(LONG).await?;
        shoot.untouched_since(begin)?;
        if !bed.is_given() {
            ensure!(shoot.asked().iter().any(|asked| asked.code == 403), "{}", shoot.story());
        }
        testbed::seed::apply(shoot.plane.api(), testbed::gardener::shoot_access()).await?;
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn a_seed_that_stands_still_for_a_while_is_caught_up_with() -> Result<()> {
    own_scenario("needs an API server that may be stopped", async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "seed-stands", ShootPlan::default()).await?;
        // Leadership outlasts the stops: a prober that loses it ends, and what is shown is what it does otherwise.
        let args = ["--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=100s"];
        let config = ProberConfig { args: args.map(Into::into).into(), ..ProberConfig::default() };
        let _prober = Prober::start(&seed, config).await?;
        shoot.after_probes(2).await?;
        let begin = shoot.history().len();
        let server = seed.plane().server().context("own")?.process();
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
        shoot.end().await
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
