//! Which nodes have a say, and how few are too few.

use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::shoot::{Body, CA, KCM, MCM, PATIENCE};
use testbed::{Shoot, ShootPlan, scenario};

use crate::{DOWN, UP, healthy};

/// Longer than the grace.
const OLD: Duration = Duration::from_secs(8);

fn nodes(nodes: usize) -> ShootPlan {
    ShootPlan { nodes, ..ShootPlan::default() }
}

async fn old(shoot: &Shoot, indices: &[usize]) -> Result<()> {
    shoot
        .eventually("old leases", PATIENCE, async || {
            let ages = shoot.nodes.ages().await?;
            ensure!(indices.iter().all(|index| ages[*index] > OLD), "{ages:?}");
            Ok(())
        })
        .await
}

#[test]
fn a_single_node_is_never_reason_enough() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "single", nodes(1)).await?;
        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        old(&shoot, &[0]).await?;
        shoot.after_probes(2).await?;
        shoot.untouched_since(begin)?;
        shoot.end().await
    })
}

#[test]
fn a_single_healthy_candidate_brings_back_what_is_held_down_and_nothing_else() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "single-back", nodes(2)).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        // Somebody took this one down by hand; it carries no marker.
        shoot
            .patch(
                CA,
                serde_json::json!({"metadata": {"annotations": {
                    testbed::seed::MARKER: null, testbed::seed::MEMORY: null,
                }}}),
            )
            .await?;
        shoot.set_machine_phase("node-2", "Failed").await?;
        shoot.after_probes(2).await?;
        ensure!(shoot.dependent(KCM).await?.replicas == 0, "{}", shoot.story());
        shoot.nodes.heal([0]);
        shoot.free_at(&[(KCM, 2), (MCM, 1)]).await?;
        shoot.after_probes(2).await?;
        ensure!(shoot.dependent(CA).await?.replicas == 0, "{}", shoot.story());
        shoot.nodes.heal([1]);
        shoot.set_machine_phase("node-2", "Running").await?;
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn with_no_candidate_left_all_comes_up() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "none-left", nodes(2)).await?;
        shoot.nodes.cut_all();
        shoot.held_down(&DOWN).await?;
        // New machines can only come when machine-controller-manager runs.
        shoot.set_machine_phase("node-1", "Terminating").await?;
        shoot.set_machine_phase("node-2", "Failed").await?;
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn machines_that_are_being_replaced_have_no_say() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "replaced", nodes(5)).await?;
        let begin = shoot.history().len();
        shoot.set_machine_phase("node-1", "Failed").await?;
        shoot.set_machine_phase("node-2", "Terminating").await?;
        shoot.nodes.annotate(2, "node.machine.sapcloud.io/not-managed-by-mcm", Some("")).await?;
        shoot.after_probes(1).await?;
        shoot.nodes.cut([0, 1, 2]);
        old(&shoot, &[0, 1, 2]).await?;
        shoot.after_probes(2).await?;
        shoot.untouched_since(begin)?;
        shoot.nodes.cut([3, 4]);
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn nodes_that_are_known_to_be_unhealthy_have_no_say() -> Result<()> {
    scenario(async |bed| {
        let body = Body { workers: vec![("pool", vec!["DiskPressure", "MemoryPressure"])], ..Body::default() };
        let mut shoot = healthy(bed, "unhealthy", ShootPlan { body, ..nodes(5) }).await?;
        let begin = shoot.history().len();
        shoot.nodes.report(0, "MemoryPressure", "True", "TooFull").await?;
        shoot.nodes.report(1, "DiskPressure", "True", "TooFull").await?;
        shoot.nodes.report(2, "InPlaceUpdate", "True", "ReadyForUpdate").await?;
        shoot.nodes.cut([0, 1, 2]);
        old(&shoot, &[0, 1, 2]).await?;
        shoot.after_probes(2).await?;
        shoot.untouched_since(begin)?;
        // With other conditions the first two have a say again, as has the third with another reason: 3 of 5 are expired.
        shoot.change(|body| body.workers = vec![("pool", vec!["PIDPressure"])]).await?;
        shoot.nodes.report(2, "InPlaceUpdate", "True", "CandidateForUpdate").await?;
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal_all();
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn a_lease_without_a_time_and_a_node_without_a_lease_have_no_say() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "timeless", nodes(4)).await?;
        let begin = shoot.history().len();
        shoot.nodes.cut([0, 1]);
        shoot.nodes.erase_renew_time(0).await?;
        shoot.nodes.delete_lease(1).await?;
        shoot.after_probes(8).await?;
        shoot.untouched_since(begin)?;
        shoot.nodes.cut([2, 3]);
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal([2, 3]);
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}
