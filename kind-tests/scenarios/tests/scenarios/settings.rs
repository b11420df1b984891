//! What operators set by annotations on namespaces.

use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::gardener::{GARDEN, PAUSE};
use testbed::page::metrics;
use testbed::shoot::PATIENCE;
use testbed::{Prober, ProberConfig, Shoot, ShootPlan, scenario};

use crate::{DOWN, UP};

#[test]
fn a_pause_on_garden_stops_every_write_but_for_shoots_whose_namespaces_say_otherwise() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let paused = Shoot::create(bed, &seed, "paused", ShootPlan::default()).await?;
        let exempt = Shoot::create(bed, &seed, "exempt", ShootPlan::default()).await?;
        seed.annotate(GARDEN, PAUSE, Some("true")).await?;
        seed.annotate(&exempt.namespace, PAUSE, Some("false")).await?;
        let prober = Prober::start(&seed, ProberConfig::default()).await?;
        for shoot in [&paused, &exempt] {
            // Beyond the initial delay.
            shoot.after_probes(4).await?;
            shoot.nodes.cut_all();
        }
        let begin = paused.history().len();
        exempt.held_down(&DOWN).await?;
        paused.leases_older_than(Duration::from_secs(8)).await?;
        paused.after_probes(2).await?;
        paused.untouched_since(begin)?;

        seed.annotate(GARDEN, PAUSE, None).await?;
        paused.held_down(&DOWN).await?;

        seed.annotate(GARDEN, PAUSE, Some("true")).await?;
        paused
            .eventually("one shoot is paused", PATIENCE, async || {
                let shoots = metrics(prober.log_file()).await?.value("dwd_paused_shoots")?;
                ensure!(shoots == 1.0, "{shoots}");
                Ok(())
            })
            .await?;
        let begin = paused.history().len();
        for shoot in [&paused, &exempt] {
            shoot.nodes.heal_all();
        }
        exempt.free_at(&UP).await?;
        paused.leases_younger_than(Duration::from_secs(3)).await?;
        paused.after_probes(2).await?;
        paused.untouched_since(begin)?;
        seed.annotate(GARDEN, PAUSE, None).await?;
        paused.free_at(&UP).await?;
        seed.annotate(&exempt.namespace, PAUSE, None).await?;
        paused.end().await?;
        exempt.end().await
    })
}
