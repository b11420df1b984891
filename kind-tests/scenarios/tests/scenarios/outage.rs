//! The main job: an outage, and the way back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::seed::READY_AFTER;
use testbed::shoot::{CA, KCM, MCM, PATIENCE};
use testbed::{ProberConfig, Shoot, ShootPlan, scenario};
use tokio::time::Instant;

use crate::{UP, alone, came_back_in_order, comes_back, end_alone, end_of_outage, goes_down, healthy, through_an_outage};

#[test]
fn an_outage_takes_all_to_zero_in_order_and_recovery_brings_them_back_in_order() -> Result<()> {
    scenario(async |bed| {
        // With a longer grace there is more time between the verdict and the moment from which order no longer counts.
        let grace = Duration::from_secs(16);
        let shoot = healthy(bed, "outage", ShootPlan { grace, ..ShootPlan::default() }).await?;
        let begin = shoot.history().len();
        let cut = Instant::now();
        goes_down(&shoot).await?;

        let order = shoot.order(begin, |state| state.replicas == 0);
        ensure!(order.last().is_some_and(|last| last == KCM), "{order:?}\n{}", shoot.story());
        in_time(&shoot, cut, grace)?;

        let begin = shoot.history().len();
        comes_back(&shoot).await?;
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
        // A tenth less: the watch that shows it is no stop-watch.
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
fn controller_manager_goes_in_time_even_when_the_level_before_it_does_not_end() -> Result<()> {
    scenario(async |bed| {
        // The longer the grace, the more time is left between the prober's own deadline and this one.
        let grace = Duration::from_secs(16);
        let shoot = healthy(bed, "slow-level", ShootPlan { grace, ..ShootPlan::default() }).await?;
        shoot.annotate(MCM, READY_AFTER, Some("60000")).await?;
        let cut = Instant::now();
        goes_down(&shoot).await?;
        in_time(&shoot, cut, grace)?;
        ensure!(shoot.dependent(MCM).await?.ready == 1, "it was to be slow\n{}", shoot.story());
        shoot.annotate(MCM, READY_AFTER, None).await?;
        end_of_outage(shoot).await
    })
}

#[test]
fn a_relapse_in_the_middle_of_the_way_back_takes_all_down_again() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "relapse", ShootPlan::default()).await?;
        goes_down(&shoot).await?;
        shoot.nodes.heal_all();
        shoot
            .eventually("the way back has begun", PATIENCE, async || {
                let state = shoot.dependent(KCM).await?;
                ensure!(state.replicas == 2, "{state}");
                Ok(())
            })
            .await?;
        // And once more after a way back to the end.
        for _ in 0..2 {
            through_an_outage(&shoot).await?;
        }
        shoot.end().await
    })
}

#[test]
fn the_delay_of_the_machine_controller_is_waited_only_when_it_has_to_be_scaled() -> Result<()> {
    scenario(async |bed| {
        let config = ProberConfig { machine_delay: "20s", ..ProberConfig::default() };
        let (shoot, prober) = alone(bed, "delay", ShootPlan::default(), config).await?;
        // Probes do not wait for it,
        let begin = Instant::now();
        shoot.after_probes(4).await?;
        ensure!(begin.elapsed() < Duration::from_secs(20), "{:?}\n{}", begin.elapsed(), shoot.story());

        // nor does the level after it.
        let begin = Instant::now();
        shoot.scale(CA, 0).await?;
        shoot.free_at(&UP).await?;
        ensure!(begin.elapsed() < Duration::from_secs(20), "{:?}\n{}", begin.elapsed(), shoot.story());
        end_alone(bed, shoot, prober).await
    })
}
