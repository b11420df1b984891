//! API servers that fail as real ones do: they stand still, are killed, lose answers, and forget
//! what watches go on from.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::proxy::{ProxyMode, TcpProxy};
use testbed::{SeedCluster, ShootCluster, ShootPlan, scenario, start_prober};
use tokio::time::Instant;

use crate::{LONG, USUAL, alone, logs, with_args, written};

#[test]
fn server_that_stands_still_is_no_outage() -> Result<()> {
    scenario(async |bed| {
        let (shoot, _prober) = alone(bed, "server-stands", ShootPlan::default(), &[]).await?;
        // Nobody reaches it: neither the prober, nor the nodes, nor a controller that could give
        // them up.
        shoot.plane.process().pause(true)?;
        let since = Instant::now();
        let stopped = async || {
            ensure!(since.elapsed() > LONG, "{:?}", since.elapsed());
            Ok(())
        };
        shoot.eventually("a long stop", stopped).await?;
        shoot.plane.process().pause(false)?;
        shoot.leases_younger_than(Duration::from_secs(3)).await?;
        shoot.after_probes(3).await?;
        // Its first answers tell of old leases: whatever was done about them is undone.
        shoot.free_at(&USUAL).await?;
        shoot.end().await
    })
}

/// An outage begins, or ends.
fn turn(shoot: &ShootCluster, cut: bool) {
    if cut {
        shoot.nodes.cut_all()
    } else {
        shoot.nodes.heal_all()
    }
}

/// While the seed is away the outage begins, or ends, for long enough to be noticed.
async fn unseen_turn(shoot: &ShootCluster, cut: bool) -> Result<()> {
    turn(shoot, cut);
    if cut {
        return shoot.leases_older_than(Duration::from_secs(8)).await;
    }
    shoot.leases_younger_than(Duration::from_secs(3)).await?;
    shoot.after_probes(3).await
}

/// The usual three are held down after its beginning, or come back after its end, and since this
/// entry of the history none went the other way.
async fn has_turned(shoot: &ShootCluster, cut: bool, begin: usize) -> Result<()> {
    if cut {
        shoot.held_down(&USUAL).await?;
    } else {
        shoot.free_at(&USUAL).await?;
    }
    let mut strays = shoot.writes_since(begin);
    strays.retain(|entry| entry.state.as_ref().is_some_and(|it| it.replicas == 0) != cut);
    ensure!(strays.is_empty(), "{strays:?}\n{}", shoot.story());
    Ok(())
}

/// How often the Clusters have been listed.
fn lists(seed: &SeedCluster) -> usize {
    let mut lists = seed.asked();
    lists.retain(|it| it.verb == "list" && it.resource == "clusters" && it.code == 200);
    lists.len()
}

#[test]
fn seed_that_was_away_is_caught_up_with() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = ShootCluster::create(bed, &seed, "seed-away", ShootPlan::default()).await?;
        let (server, proxy) = (seed.plane(), TcpProxy::start(seed.plane().address()).await?);
        let way = seed.folder().join("kubeconfig-through-the-proxy");
        let through = format!("https://{}", proxy.address());
        let direct = seed.prober_kubeconfig().await?;
        std::fs::write(&way, direct.replace(&server.url(), &through))?;
        let args = [
            &format!("--kubeconfig={}", way.display()),
            // The lead outlasts every stop: an agent that loses it ends, and what is shown is what
            // it does otherwise.
            "--leader-elect-lease-duration=120s",
            "--leader-elect-renew-deadline=100s",
        ];
        let prober = start_prober(&seed, with_args(&args)).await?;
        shoot.after_probes(2).await?;

        for fault in ["its answers are lost", "it stands still", "it is killed"] {
            for cut in [true, false] {
                let begin = shoot.history().len();
                match fault {
                    "its answers are lost" => {
                        proxy.set(ProxyMode::HalfOpen);
                        unseen_turn(&shoot, cut).await?;
                        // A write without an answer.
                        logs(&prober, "resource cannot be scaled", "").await?;
                        proxy.set(ProxyMode::Open);
                    }
                    "it stands still" => {
                        server.process().pause(true)?;
                        unseen_turn(&shoot, cut).await?;
                        server.process().pause(false)?;
                    }
                    // In the middle of a flow, which goes on to its end. What has happened since
                    // the watches were cut is forgotten: all is listed again.
                    _ => {
                        let before = lists(&seed);
                        turn(&shoot, cut);
                        written(&shoot, begin).await?;
                        server.process().signal(Signal::SIGKILL)?;
                        bed.compact().await?;
                        server.start_again().await?;
                        let again = async || {
                            let lists = lists(&seed);
                            ensure!(lists > before, "{lists} lists");
                            Ok(())
                        };
                        shoot.eventually("new lists", again).await?;
                    }
                }
                has_turned(&shoot, cut, begin).await.context(fault)?;
            }
        }
        // After that nothing more is written.
        let begin = shoot.history().len();
        shoot.after_probes(3).await?;
        shoot.untouched_since(begin)?;
        // An API server that has just begun does not know its roles yet, and forbids everything
        // for a moment.
        seed.search_events().await
    })
}
