//! The main job: an outage, and the way back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::seed::READY_AFTER;
use testbed::shoot::{CA, KCM, MCM, PATIENCE};
use testbed::{Prober, ProberConfig, Shoot, ShootPlan, scenario};
use tokio::time::Instant;

use crate::{DOWN, UP, came_back_in_order, healthy, through_an_outage};

#[test]
fn an_outage_takes_all_to_zero_in_order_and_recovery_brings_them_back_in_order() -> Result<()> {
    scenario(async |bed| {
        // With a longer grace there is more time between the verdict and the moment from which order no longer counts.
        let grace = Duration::from_secs(16);
        let shoot = healthy(bed, "outage", ShootPlan { grace, ..ShootPlan::default() }).await?;
        let begin = shoot.history().len();
        let cut = Instant::now();
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;

        let order = shoot.order(begin, |state| state.replicas == 0);
        ensure!(order.last().is_some_and(|last| last == KCM), "{order:?}\n{}", shoot.story());
        in_time(&shoot, cut, grace)?;

        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        came_back_in_order(&shoot, begin)?;

        // Each level waits until the one before it is ready, and machine-controller-manager 2 s more.
        let history: Vec<_> = shoot.history().into_iter().skip(begin).collect();
        let first = |name: &str, so: &dyn Fn(i64, i64) -> bool| {
            let entry = history
                .iter()
                .find(|entry| entry.name == name && entry.state.as_ref().is_some_and(|state| so(state.replicas, state.ready)));
            entry.map(|entry| entry.at).with_context(|| format!("{name}\n{}", shoot.story()))
        };
        let (ready, machines) = (first(KCM, &|_, ready| ready > 0)?, first(MCM, &|wanted, _| wanted > 0)?);
        // A tenth less: the watch that tells us is no stop-watch.
        ensure!(machines - ready > Duration::from_millis(1800), "{:?}\n{}", machines - ready, shoot.story());
        ensure!(first(CA, &|wanted, _| wanted > 0)? >= first(MCM, &|_, ready| ready > 0)?, "{}", shoot.story());
        shoot.end().await
    })
}

/// kube-controller-manager was at 0 before it could give up the first node.
fn in_time(shoot: &Shoot, cut: Instant, grace: Duration) -> Result<()> {
    let zero = shoot
        .history()
        .into_iter()
        .rfind(|entry| entry.name == KCM && entry.at > cut && entry.state.as_ref().is_some_and(|state| state.replicas == 0));
    let late = zero.context("never at 0")?.at - cut;
    ensure!(late < grace, "at 0 only {late:?} after the nodes were cut off\n{}", shoot.story());
    Ok(())
}

#[test]
fn one_recovers_and_fails_again_as_often_as_it_likes() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "again", ShootPlan::default()).await?;
        for _ in 0..2 {
            through_an_outage(&shoot).await?;
        }
        shoot.end().await
    })
}

#[test]
fn nothing_is_written_while_fewer_than_the_fraction_are_expired() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "two-of-five", ShootPlan { nodes: 5, ..ShootPlan::default() }).await?;
        let begin = shoot.history().len();
        shoot.nodes.cut([0, 1]);
        shoot
            .eventually("two old leases", PATIENCE, async || {
                let ages = shoot.nodes.ages().await?;
                ensure!(ages[0] > Duration::from_secs(8) && ages[1] > Duration::from_secs(8), "{ages:?}");
                Ok(())
            })
            .await?;
        shoot.after_probes(2).await?;
        shoot.untouched_since(begin)?;
        shoot.nodes.cut([2]);
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal([0]);
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn controller_manager_goes_in_time_even_when_the_level_before_it_does_not_end() -> Result<()> {
    scenario(async |bed| {
        // The longer the grace, the more time is left between the prober's own deadline and this one.
        let grace = Duration::from_secs(16);
        let shoot = healthy(bed, "slow-level", ShootPlan { grace, ..ShootPlan::default() }).await?;
        shoot.annotate(MCM, READY_AFTER, Some("60000")).await?;
        let cut = Instant::now();
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        in_time(&shoot, cut, grace)?;
        ensure!(shoot.dependent(MCM).await?.ready == 1, "it was to be slow\n{}", shoot.story());
        shoot.annotate(MCM, READY_AFTER, None).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn a_level_that_never_gets_ready_holds_the_next_one_up_for_five_seconds_only() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "never-ready", ShootPlan::default()).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        shoot.annotate(KCM, READY_AFTER, Some("never")).await?;
        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        came_back_in_order(&shoot, begin)?;
        shoot.end().await
    })
}

#[test]
fn a_relapse_in_the_middle_of_the_way_back_takes_all_down_again() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "relapse", ShootPlan::default()).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot
            .eventually("the way back has begun", PATIENCE, async || {
                let state = shoot.dependent(KCM).await?;
                ensure!(state.replicas == 2, "{state}");
                Ok(())
            })
            .await?;
        through_an_outage(&shoot).await?;
        shoot.end().await
    })
}

#[test]
fn the_delay_of_the_machine_controller_is_waited_only_when_it_has_to_be_scaled() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "delay", ShootPlan::default()).await?;
        let config = ProberConfig { machine_delay: "20s", ..ProberConfig::default() };
        let prober = Prober::start(&seed, config).await?;
        shoot.after_probes(2).await?;

        // Probes do not wait for it,
        let begin = Instant::now();
        shoot.after_probes(4).await?;
        ensure!(begin.elapsed() < Duration::from_secs(20), "{:?}\n{}", begin.elapsed(), shoot.story());

        // nor does the level after it.
        let begin = Instant::now();
        shoot.scale(CA, 0).await?;
        shoot.free_at(&UP).await?;
        ensure!(begin.elapsed() < Duration::from_secs(20), "{:?}\n{}", begin.elapsed(), shoot.story());
        drop(prober);
        shoot.end().await
    })
}
