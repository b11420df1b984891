//! Which shoots are probed, and what happens when that changes.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use testbed::shoot::Body;
use testbed::{Bed, Shoot, ShootPlan, scenario};

use crate::{DOWN, UP, healthy, shoot, through_an_outage};

/// Several probe intervals.
const LONG: Duration = Duration::from_secs(4);

/// In mid-outage a change ends the probing: from then on nothing is asked and nothing written, also when the nodes come back.
async fn stops(bed: &'static Bed, name: &str, change: impl FnOnce(&mut Body)) -> Result<Shoot> {
    let mut shoot = healthy(bed, name, ShootPlan::default()).await?;
    shoot.nodes.cut_all();
    shoot.held_down(&DOWN).await?;
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
        let mut shoot = stops(bed, "migrate", |body| body.operation = Some(("Migrate", "Processing"))).await?;
        let begin = shoot.history().len();
        shoot.change(|body| body.operation = Some(("Restore", "Processing"))).await?;
        shoot.silent_for(LONG).await?;
        shoot.untouched_since(begin)?;
        shoot.change(|body| body.operation = Some(("Restore", "Succeeded"))).await?;
        shoot.free_at(&UP).await?;
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
fn a_shoot_that_is_being_deleted_is_left_alone() -> Result<()> {
    scenario(async |bed| {
        let shoot = stops(bed, "delete", |body| body.deleting = true).await?;
        shoot.end().await
    })
}

#[test]
fn a_shoot_without_workers_is_left_alone_until_it_has_some() -> Result<()> {
    scenario(async |bed| {
        let mut shoot = stops(bed, "worker-less", |body| body.workers.clear()).await?;
        shoot.change(|body| body.workers = vec![("pool", Vec::new())]).await?;
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn a_deleted_cluster_is_left_alone() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "cluster-gone", ShootPlan::default()).await?;
        let begin = shoot.history().len();
        shoot.delete_cluster().await?;
        shoot.silent_for(LONG).await?;
        shoot.nodes.cut_all();
        shoot.leases_older_than(Duration::from_secs(8)).await?;
        shoot.untouched_since(begin)?;
        shoot.end().await
    })
}

#[test]
fn a_shoot_that_is_being_created_or_restored_is_not_probed_before_that_has_succeeded() -> Result<()> {
    scenario(async |bed| {
        for (name, kind) in [("creating", "Create"), ("restoring", "Restore")] {
            let plan = ShootPlan { body: Body::operation(kind, "Processing"), ..ShootPlan::default() };
            let mut shoot = shoot(bed, name, plan).await?;
            shoot.silent_for(LONG).await?;
            ensure!(shoot.relay.connections() == 0, "{}", shoot.story());
            shoot.change(|body| body.operation = Some((kind, "Succeeded"))).await?;
            shoot.after_probes(1).await?;
            shoot.end().await?;
        }
        Ok(())
    })
}

#[test]
fn a_running_probe_goes_on_while_the_shoot_is_created_restored_or_reconciled_anew() -> Result<()> {
    scenario(async |bed| {
        let mut shoot = healthy(bed, "goes-on", ShootPlan::default()).await?;
        for operation in [("Restore", "Processing"), ("Create", "Error"), ("Reconcile", "Failed"), ("Delete", "Pending")] {
            shoot.change(|body| body.operation = Some(operation)).await?;
            shoot.after_probes(2).await?;
        }
        through_an_outage(&shoot).await?;
        shoot.end().await
    })
}

#[test]
fn a_cluster_that_cannot_be_read_keeps_its_probe_and_harms_no_other() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "unreadable", ShootPlan::default()).await?;
        for broken in [json!({"apiVersion": 8}), json!({"spec": "no"}), json!(null)] {
            shoot.publish_raw(broken).await?;
            shoot.after_probes(2).await?;
        }
        through_an_outage(&shoot).await?;
        shoot.end().await
    })
}

#[test]
fn a_new_grace_is_taken_up_by_the_running_probe() -> Result<()> {
    scenario(async |bed| {
        let mut shoot = healthy(bed, "new-grace", ShootPlan::default()).await?;
        let begin = shoot.history().len();
        shoot.change(|body| body.grace = Some(Duration::from_secs(60))).await?;
        shoot.after_probes(2).await?;
        shoot.nodes.cut_all();
        shoot.leases_older_than(Duration::from_secs(9)).await?;
        shoot.after_probes(1).await?;
        shoot.untouched_since(begin)?;
        shoot.change(|body| body.grace = Some(Duration::from_secs(6))).await?;
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}
