//! Which shoots are probed, and what happens when that changes.

use std::time::Duration;

use anyhow::Result;
use testbed::gardener::{cluster, nest_deeply};
use testbed::objects::path;
use testbed::shoot::Body;
use testbed::{Prober, ProberConfig, ShootCluster, ShootPlan, Testbed, scenario};

use crate::{UP, end_alone, goes_down, healthy, through_an_outage};

/// Several probe intervals.
const LONG: Duration = Duration::from_secs(4);

/// In mid-outage a change ends the probing: from then on nothing is asked and nothing written, also
/// when the nodes come back.
async fn stops(
    bed: &'static Testbed,
    name: &str,
    change: impl FnOnce(&mut Body),
) -> Result<ShootCluster> {
    let mut shoot = healthy(bed, name, ShootPlan::default()).await?;
    goes_down(&shoot).await?;
    shoot.change(change).await?;
    shoot.silent_for(LONG).await?;
    let begin = shoot.history().len();
    shoot.nodes.heal_all();
    shoot.leases_younger_than(Duration::from_secs(3)).await?;
    shoot.silent_for(LONG).await?;
    shoot.untouched_since(begin)?;
    Ok(shoot)
}

#[test]
fn a_migrated_shoot_is_left_alone_and_probed_again_once_restored() -> Result<()> {
    scenario(async |bed| {
        let mut shoot = stops(bed, "migrate", |body| {
            body.operation = Some(("Migrate", "Processing"))
        })
        .await?;
        let begin = shoot.history().len();
        shoot
            .change(|body| body.operation = Some(("Restore", "Processing")))
            .await?;
        shoot.silent_for(LONG).await?;
        shoot.untouched_since(begin)?;
        shoot
            .change(|body| body.operation = Some(("Restore", "Succeeded")))
            .await?;
        shoot.free_at(&UP).await?;

        // From now on a running probe goes on, also while the shoot is created, restored or
        // reconciled again.
        for operation in [
            ("Restore", "Processing"),
            ("Create", "Error"),
            ("Reconcile", "Failed"),
            ("Delete", "Pending"),
        ] {
            shoot
                .change(|body| body.operation = Some(operation))
                .await?;
            shoot.after_probes(2).await?;
        }
        through_an_outage(&shoot).await?;
        shoot.end().await
    })
}

#[test]
fn a_hibernated_shoot_is_left_alone_until_it_has_woken_up() -> Result<()> {
    scenario(async |bed| {
        let mut shoot = stops(bed, "hibernate", |body| {
            body.hibernation = true;
            body.hibernated = true;
        })
        .await?;
        let begin = shoot.history().len();
        shoot.change(|body| body.hibernation = false).await?;
        shoot.silent_for(LONG).await?;
        shoot.untouched_since(begin)?;
        shoot.change(|body| body.hibernated = false).await?;
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn a_cluster_that_is_nested_deeply_harms_no_other_shoot() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let mut deep = cluster("shoot--bed--deep", None);
        nest_deeply(&mut deep);
        seed.api().create(&deep).await?;
        let shoot = ShootCluster::create(bed, &seed, "beside", ShootPlan::default()).await?;
        let prober = Prober::start(&seed, ProberConfig::default()).await?;
        shoot.after_probes(2).await?;
        through_an_outage(&shoot).await?;
        seed.api().delete(&path(&deep)?).await?;
        end_alone(shoot, prober).await
    })
}
