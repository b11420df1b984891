//! Which nodes have a say.

use anyhow::Result;
use testbed::shoot::Body;
use testbed::{ShootPlan, scenario};

use crate::{DOWN, UP, goes_down, healthy};

#[test]
fn a_node_that_is_no_candidate_has_no_say() -> Result<()> {
    scenario(async |bed| {
        let body = Body {
            workers: vec![("pool", vec!["DiskPressure", "MemoryPressure"])],
            ..Body::default()
        };
        let mut shoot = healthy(
            bed,
            "no-say",
            ShootPlan {
                nodes: 10,
                body,
                ..ShootPlan::default()
            },
        )
        .await?;
        let begin = shoot.history().len();
        // Of the first two, which are candidates, one falls silent: no outage. Each of the others
        // alone would make it two of three.
        shoot.set_machine_phase("node-3", "Failed").await?;
        shoot.set_machine_phase("node-4", "Terminating").await?;
        shoot
            .nodes
            .annotate(4, "node.machine.sapcloud.io/not-managed-by-mcm", Some(""))
            .await?;
        shoot
            .nodes
            .report(5, "MemoryPressure", "True", "TooFull")
            .await?;
        shoot
            .nodes
            .report(6, "DiskPressure", "True", "TooFull")
            .await?;
        shoot
            .nodes
            .report(7, "InPlaceUpdate", "True", "ReadyForUpdate")
            .await?;
        shoot.after_probes(1).await?;
        shoot.nodes.cut(1..10);
        shoot.nodes.settled().await;
        shoot.nodes.erase_renew_time(8).await?;
        shoot.nodes.delete_lease(9).await?;
        shoot.after_probes(8).await?;
        shoot.untouched_since(begin)?;

        // With another reason the update makes it two of three,
        shoot
            .nodes
            .report(7, "InPlaceUpdate", "True", "CandidateForUpdate")
            .await?;
        shoot.held_down(&DOWN).await?;
        shoot
            .nodes
            .report(7, "InPlaceUpdate", "True", "ReadyForUpdate")
            .await?;
        shoot.free_at(&UP).await?;
        // and with other conditions of the pool it is three of four.
        shoot
            .change(|body| body.workers = vec![("pool", vec!["PIDPressure"])])
            .await?;
        shoot.held_down(&DOWN).await?;
        shoot.nodes.heal(1..9);
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}

#[test]
fn with_no_candidate_left_all_comes_up() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(
            bed,
            "none-left",
            ShootPlan {
                nodes: 2,
                ..ShootPlan::default()
            },
        )
        .await?;
        goes_down(&shoot).await?;
        let begin = shoot.history().len();
        shoot.set_machine_phase("node-1", "Terminating").await?;
        shoot.after_probes(2).await?;
        // One candidate is left, and its lease is expired.
        shoot.untouched_since(begin)?;
        // New machines can only come when machine-controller-manager runs.
        shoot.set_machine_phase("node-2", "Failed").await?;
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}
