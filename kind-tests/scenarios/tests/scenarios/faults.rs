//! Faults whose reality matters: what a real API server, a real etcd and a real network do when they fail.

mod hostile;
mod restarts;
mod throttling;

use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::relay::{Path, Relay};
use testbed::seed::Entry;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{Shoot, ShootPlan, scenario};

use crate::{DOWN, PATIENT, UP, end_alone, logs, own_seed, prober_behind};

#[test]
fn a_watch_that_died_in_silence_costs_neither_the_memory_nor_the_way_back() -> Result<()> {
    scenario(async |bed| {
        let seed = own_seed(bed).await?;
        let shoot = Shoot::create(bed, &seed, "silent-watches", ShootPlan { forbidden: true, ..ShootPlan::default() }).await?;
        let relay = Relay::start(seed.plane().address()).await?;
        let prober = prober_behind(&seed, &relay, &PATIENT).await?;
        shoot.after_probes(2).await?;

        // The network forgets the connections of all watches, and what changes from now on is not shown.
        relay.freeze();
        shoot.scale(MCM, 3).await?;
        shoot.nodes.cut_all();
        let down = [(KCM, "2"), (MCM, "3"), (CA, "1")];
        shoot.held_down(&down).await?;
        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot.free_at(&[(KCM, 2), (MCM, 3), (CA, 1)]).await?;
        let ups = shoot.writes_since(begin);
        ensure!(ups.len() == 3, "{ups:#?}");
        end_alone(bed, shoot, prober).await
    })
}

#[test]
fn a_seed_whose_answers_are_lost_is_caught_up_with() -> Result<()> {
    scenario(async |bed| {
        let seed = own_seed(bed).await?;
        let shoot = Shoot::create(bed, &seed, "seed-half-open", ShootPlan::default()).await?;
        let relay = Relay::start(seed.plane().address()).await?;
        let prober = prober_behind(&seed, &relay, &PATIENT).await?;
        shoot.after_probes(2).await?;
        for cut in [true, false] {
            let begin = shoot.history().len();
            relay.set(Path::HalfOpen);
            if cut {
                shoot.nodes.cut_all();
                // A write without an answer.
                logs(&prober, "resource cannot be scaled", "").await?;
            } else {
                shoot.nodes.heal_all();
                shoot.leases_younger_than(Duration::from_secs(3)).await?;
                shoot.after_probes(2).await?;
            }
            relay.cut();
            relay.set(Path::Open);
            if cut {
                shoot.held_down(&DOWN).await?
            } else {
                shoot.free_at(&UP).await?
            }
            // What was sent may have arrived, but nothing was kept for later: none goes the other way.
            let down = |entry: &Entry| entry.state.as_ref().is_some_and(|state| state.replicas == 0);
            let strays: Vec<Entry> = shoot.writes_since(begin).into_iter().filter(|entry| down(entry) != cut).collect();
            ensure!(strays.is_empty(), "{strays:?}\n{}", shoot.story());
        }
        end_alone(bed, shoot, prober).await
    })
}
