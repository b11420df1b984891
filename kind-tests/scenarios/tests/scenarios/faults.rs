//! API servers that fail as real ones do: they stand still, are killed, lose answers, and forget
//! what watches go on from.

use std::time::Duration;

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;
use testbed::proxy::{ProxyMode, TcpProxy};
use testbed::{SeedCluster, ShootCluster, ShootPlan, scenario};
use tokio::time::Instant;

use crate::{PATIENT, UP, end_alone, has_turned, healthy, logs, prober_behind, turn, written};

/// Twice the grace: every lease would have been expired for long.
const LONG: Duration = Duration::from_secs(12);

#[test]
fn server_that_stands_still_is_no_outage() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "server-stands", ShootPlan::default()).await?;
        let server = shoot.plane.process();
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

/// While the seed is away the outage begins, or ends, for long enough to be noticed.
async fn unseen_turn(shoot: &ShootCluster, cut: bool) -> Result<()> {
    turn(shoot, cut);
    if cut {
        return shoot.leases_older_than(Duration::from_secs(8)).await;
    }
    shoot.leases_younger_than(Duration::from_secs(3)).await?;
    shoot.after_probes(3).await
}

/// How often the Clusters have been listed.
fn lists(seed: &SeedCluster) -> usize {
    let asked = seed.asked();
    let lists = asked
        .iter()
        .filter(|asked| asked.verb == "list" && asked.resource == "clusters" && asked.code == 200);
    lists.count()
}

#[test]
fn seed_that_was_away_is_caught_up_with() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let plan = ShootPlan {
            // An API server that has just begun does not know its roles yet, and forbids
            // everything for a moment.
            forbidden: true,
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed, "seed-away", plan).await?;
        let proxy = TcpProxy::start(seed.plane().address()).await?;
        let mut prober = prober_behind(&seed, &proxy, &PATIENT).await?;
        let server = seed.plane();
        shoot.after_probes(2).await?;

        for cut in [true, false] {
            let begin = shoot.history().len();
            proxy.set(ProxyMode::HalfOpen);
            unseen_turn(&shoot, cut).await?;
            // A write without an answer.
            logs(&prober, "resource cannot be scaled", "").await?;
            proxy.cut();
            proxy.set(ProxyMode::Open);
            has_turned(&shoot, cut, begin).await?;
        }
        for cut in [true, false] {
            let begin = shoot.history().len();
            server.process().signal(Signal::SIGSTOP)?;
            unseen_turn(&shoot, cut).await?;
            server.process().signal(Signal::SIGCONT)?;
            has_turned(&shoot, cut, begin).await?;
        }
        // In the middle of a flow, which goes on to its end. What has happened since the
        // watches were cut is forgotten: all is listed again.
        for cut in [true, false] {
            let (begin, before) = (shoot.history().len(), lists(&seed));
            turn(&shoot, cut);
            written(&shoot, begin).await?;
            server.process().signal(Signal::SIGKILL)?;
            bed.compact().await?;
            server.start_again().await?;
            has_turned(&shoot, cut, begin).await?;
            shoot
                .eventually("new lists", async || {
                    let lists = lists(&seed);
                    ensure!(lists > before, "{lists} lists");
                    Ok(())
                })
                .await?;
        }
        ensure!(prober.ended()?.is_none(), "it has ended");
        // After that nothing more is written.
        let begin = shoot.history().len();
        shoot.after_probes(3).await?;
        shoot.untouched_since(begin)?;
        end_alone(shoot, prober).await
    })
}
