//! A seed's API server that is killed and starts again: in the middle of watches, after etcd has forgotten what they go on
//! from, and in the middle of flows.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::shoot::PATIENCE;
use testbed::{Prober, ProberConfig, Seed, Shoot, ShootPlan, own_scenario};

use super::PATIENT;
use crate::weeder::ground::Ground;
use crate::weeder::on_ground;
use crate::weeder::plane::{ETCD, Plane, State};
use crate::{DOWN, UP, through_an_outage};

fn kill(seed: &Seed) -> Result<()> {
    seed.plane().server().context("own")?.process().signal(Signal::SIGKILL)
}

async fn start_again(seed: &Seed) -> Result<()> {
    seed.plane().server().context("own")?.start_again().await
}

/// How often the Clusters have been listed.
fn lists(seed: &Seed) -> usize {
    seed.asked().iter().filter(|asked| asked.verb == "list" && asked.resource == "clusters" && asked.code == 200).count()
}

/// An API server that has just begun does not know its roles yet, and forbids everything for a moment.
fn plan() -> ShootPlan {
    ShootPlan { forbidden: true, ..ShootPlan::default() }
}

fn config() -> ProberConfig {
    ProberConfig { args: PATIENT.map(Into::into).into(), ..ProberConfig::default() }
}

#[test]
fn watches_that_were_cut_before_a_compaction_are_begun_anew_and_nothing_is_missed() -> Result<()> {
    own_scenario("needs an API server that may be killed", async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "compacted", plan()).await?;
        let _prober = Prober::start(&seed, config()).await?;
        shoot.after_probes(2).await?;
        let (begin, before) = (shoot.history().len(), lists(&seed));
        kill(&seed)?;
        bed.compact().await?;
        start_again(&seed).await?;
        // From where the watches stood nothing can be told any more: all is listed again.
        shoot
            .eventually("new lists", PATIENCE, async || {
                let lists = lists(&seed);
                ensure!(lists > before, "{lists} lists");
                Ok(())
            })
            .await?;
        shoot.after_probes(2).await?;
        shoot.untouched_since(begin)?;
        through_an_outage(&shoot).await?;
        shoot.end().await
    })
}

#[test]
fn a_seed_that_restarts_in_the_middle_of_a_flow_is_written_to_the_end() -> Result<()> {
    own_scenario("needs an API server that may be killed", async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "seed-restarts", plan()).await?;
        let mut prober = Prober::start(&seed, config()).await?;
        shoot.after_probes(2).await?;
        for cut in [true, false] {
            let begin = shoot.history().len();
            if cut {
                shoot.nodes.cut_all()
            } else {
                shoot.nodes.heal_all()
            }
            shoot
                .eventually("a write", PATIENCE, async || {
                    ensure!(!shoot.writes_since(begin).is_empty());
                    Ok(())
                })
                .await?;
            kill(&seed)?;
            start_again(&seed).await?;
            if cut { shoot.held_down(&DOWN).await? } else { shoot.free_at(&UP).await? }
        }
        ensure!(prober.ended()?.is_none(), "it has ended");
        // What is at rest stays as it is.
        let begin = shoot.history().len();
        shoot.after_probes(3).await?;
        shoot.untouched_since(begin)?;
        shoot.end().await
    })
}

#[test]
fn a_weeder_whose_watches_were_cut_before_a_compaction_invents_no_recovery_and_misses_none() -> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let weeder = ground.weeder(&PATIENT).await?;
        weeder.leads().await?;
        ground.watched().await?;
        let plane = Plane::on(&ground, "compacted", 1).await?;
        // etcd serves all the time, and kube-apiserver crash-loops for reasons of its own after the windows of the start.
        plane.all("main", State::NotReady).await?;
        plane.service(ETCD, false).await?;
        weeder.rests().await?;
        plane.all("apiserver", State::Crashing).await?;
        let servers = plane.pods("apiserver").await?;
        kill(&ground.seed)?;
        bed.compact().await?;
        start_again(&ground.seed).await?;
        let restarts = "dwd_weeder_watch_restarts_total{resource=\"endpointslices\"}";
        testbed::eventually("a watch that is restarted", Duration::from_secs(45), async || {
            let value = testbed::page::metrics(&weeder.log).await?.value(restarts)?;
            ensure!(value >= 1.0, "{value}");
            Ok(())
        })
        .await?;
        weeder.rests().await?;
        ensure!(plane.pods("apiserver").await? == servers, "deleted without a recovery");
        plane.all("main", State::Ready).await?;
        plane.replaced("apiserver", &servers).await?;
        plane.clear(1).await
    })
}
