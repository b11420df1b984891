//! Faults whose reality matters: what a real API server, a real etcd and a real network do when
//! they fail.

mod restarts;
pub mod throttling;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::proxy::{ProxyMode, TcpProxy};
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ShootCluster, ShootPlan, own_scenario, scenario};

use self::restarts::{kill, plan, start_again};
use crate::{PATIENT, end_alone, has_turned, logs, prober_behind, turn, writes};

#[test]
fn a_watch_that_died_in_silence_costs_neither_the_memory_nor_the_way_back() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = ShootCluster::create(
            bed,
            &seed,
            "silent-watches",
            ShootPlan {
                forbidden: true,
                ..ShootPlan::default()
            },
        )
        .await?;
        let proxy = TcpProxy::start(seed.plane().address()).await?;
        let prober = prober_behind(&seed, &proxy, &PATIENT).await?;
        shoot.after_probes(2).await?;

        // The network forgets the connections of all watches, and what changes from now on is not
        // shown.
        proxy.freeze();
        shoot.scale(MCM, 3).await?;
        shoot.nodes.cut_all();
        let down = [(KCM, "2"), (MCM, "3"), (CA, "1")];
        shoot.held_down(&down).await?;
        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 2), (MCM, 3), (CA, 1)]).await?;
        let ups = shoot.writes_since(begin);
        ensure!(ups.len() == 3, "{ups:#?}");
        end_alone(shoot, prober).await
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

#[test]
fn a_seed_that_stands_still_restarts_or_whose_answers_are_lost_is_caught_up_with() -> Result<()> {
    own_scenario(
        "needs an API server that may be stopped and killed",
        async |bed| {
            let seed = bed.own_seed().await?;
            let shoot = ShootCluster::create(bed, &seed, "seed-away", plan()).await?;
            let proxy = TcpProxy::start(seed.plane().address()).await?;
            let mut prober = prober_behind(&seed, &proxy, &PATIENT).await?;
            let server = seed.plane().server().context("own")?;
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
            // In the middle of a flow, which goes on to its end.
            for cut in [true, false] {
                let begin = shoot.history().len();
                turn(&shoot, cut);
                writes(&shoot, begin, 1).await?;
                kill(&seed)?;
                start_again(&seed).await?;
                has_turned(&shoot, cut, begin).await?;
            }
            ensure!(prober.ended()?.is_none(), "it has ended");
            // After that nothing more is written.
            let begin = shoot.history().len();
            shoot.after_probes(3).await?;
            shoot.untouched_since(begin)?;
            end_alone(shoot, prober).await
        },
    )
}
