//! The prober ends in the middle of its work, and another one goes on from what it left.

use anyhow::{Result, ensure};
use testbed::shoot::PATIENCE;
use testbed::{Prober, ProberConfig, Shoot, ShootPlan, scenario};

use crate::{DOWN, UP};

fn config() -> ProberConfig {
    // A killed prober's leadership ends soon.
    let args = ["--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=1s"];
    ProberConfig { args: args.map(Into::into).into(), ..ProberConfig::default() }
}

/// Waits for this many writes to the three resources after an entry of the history.
async fn writes(shoot: &Shoot, from: usize, count: usize) -> Result<()> {
    shoot
        .eventually("a write", PATIENCE, async || {
            let written = shoot.writes_since(from).len();
            ensure!(written >= count, "{written} of {count}");
            Ok(())
        })
        .await
}

async fn killed_after(name: &str, count: usize, bed: &'static testbed::Bed) -> Result<()> {
    let seed = bed.own_seed().await?;
    let shoot = Shoot::create(bed, &seed, name, ShootPlan::default()).await?;
    let prober = Prober::start(&seed, config()).await?;
    shoot.after_probes(2).await?;

    let begin = shoot.history().len();
    shoot.nodes.cut_all();
    writes(&shoot, begin, count).await?;
    prober.kill().await?;
    let prober = Prober::start(&seed, config()).await?;
    shoot.held_down(&DOWN).await?;

    let begin = shoot.history().len();
    shoot.nodes.heal_all();
    writes(&shoot, begin, count).await?;
    prober.kill().await?;
    let _prober = Prober::start(&seed, config()).await?;
    shoot.free_at(&UP).await?;
    shoot.after_probes(2).await?;
    shoot.free_at(&UP).await?;
    shoot.end().await
}

#[test]
fn a_prober_killed_after_the_first_write_is_followed_by_one_that_ends_its_work() -> Result<()> {
    scenario(async |bed| killed_after("killed-1", 1, bed).await)
}

#[test]
fn a_prober_killed_after_the_second_write_is_followed_by_one_that_ends_its_work() -> Result<()> {
    scenario(async |bed| killed_after("killed-2", 2, bed).await)
}

#[test]
fn a_prober_killed_after_the_third_write_is_followed_by_one_that_ends_its_work() -> Result<()> {
    scenario(async |bed| killed_after("killed-3", 3, bed).await)
}

#[test]
fn a_prober_that_starts_in_mid_outage_brings_nothing_up_by_mistake() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "restart", ShootPlan::default()).await?;
        let prober = Prober::start(&seed, config()).await?;
        shoot.after_probes(2).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        let status = prober.terminate().await?;
        ensure!(status.success(), "{status}");
        let begin = shoot.history().len();
        let _prober = Prober::start(&seed, config()).await?;
        shoot.after_probes(6).await?;
        let raised: Vec<_> = shoot.order(begin, |state| state.replicas > 0);
        ensure!(raised.is_empty(), "{raised:?}\n{}", shoot.story());
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn a_prober_that_was_held_up_looks_again_before_it_acts() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let shoot = Shoot::create(bed, &seed, "held-up", ShootPlan::default()).await?;
        // Leadership outlasts the stop: what is shown is the prober's own care.
        let prober = Prober::start(
            &seed,
            ProberConfig {
                args: ["--leader-elect-lease-duration=120s", "--leader-elect-renew-deadline=100s"].map(Into::into).into(),
                ..ProberConfig::default()
            },
        )
        .await?;
        shoot.after_probes(2).await?;
        let begin = shoot.history().len();
        prober.pause(true)?;
        // Renewals go on unseen for far longer than the grace.
        let since = tokio::time::Instant::now();
        shoot
            .eventually("a long stop", PATIENCE, async || {
                ensure!(since.elapsed().as_secs() > 10, "{:?}", since.elapsed());
                Ok(())
            })
            .await?;
        prober.pause(false)?;
        shoot.after_probes(3).await?;
        shoot.untouched_since(begin)?;
        shoot.end().await
    })
}
