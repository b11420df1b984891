//! Which nodes have a say.

use anyhow::Result;
use testbed::shoot::Body;
use testbed::{ShootPlan, scenario};

use crate::{DOWN, UP, healthy};

#[test]
fn who_is_no_candidate_has_no_say() -> Result<()> {
    scenario(async |bed| {
        let body = Body {
            conditions: vec!["DiskPressure", "MemoryPressure"],
            ..Body::default()
        };
        let plan = ShootPlan {
            nodes: 10,
            body,
            ..ShootPlan::default()
        };
        let mut shoot = healthy(bed, "no-say", plan).await?;
        let begin = shoot.history().len();
        // Of the first two, which are candidates, one falls silent: no outage. Each of the others
        // alone would make it two of three.
        shoot.set_machine_phase("node-3", "Failed").await?;
        shoot.set_machine_phase("node-4", "Terminating").await?;
        let nodes = &shoot.nodes;
        nodes
            .annotate(4, "node.machine.sapcloud.io/not-managed-by-mcm", Some(""))
            .await?;
        for (node, condition, reason) in [
            (5, "MemoryPressure", "TooFull"),
            (6, "DiskPressure", "TooFull"),
            (7, "InPlaceUpdate", "ReadyForUpdate"),
        ] {
            nodes.report(node, condition, "True", reason).await?;
        }
        shoot.after_probes(1).await?;
        nodes.cut(1..10);
        nodes.settled().await;
        nodes.erase_renew_time(8).await?;
        nodes.delete_lease(9).await?;
        shoot.after_probes(8).await?;
        shoot.untouched_since(begin)?;

        // With another reason the update makes it two of three,
        nodes
            .report(7, "InPlaceUpdate", "True", "CandidateForUpdate")
            .await?;
        shoot.held_down(&DOWN).await?;
        nodes
            .report(7, "InPlaceUpdate", "True", "ReadyForUpdate")
            .await?;
        shoot.free_at(&UP).await?;
        // and with other conditions of the pool it is three of four. Operations by which no probe
        // would begin do not end one.
        for operation in [
            ("Restore", "Processing"),
            ("Create", "Error"),
            ("Reconcile", "Failed"),
            ("Delete", "Pending"),
        ] {
            shoot.change(|body| body.operation = operation).await?;
            shoot.after_probes(2).await?;
        }
        shoot
            .change(|body| body.conditions = vec!["PIDPressure"])
            .await?;
        shoot.held_down(&DOWN).await?;
        // New machines can only come when machine-controller-manager runs.
        for machine in shoot.nodes.names() {
            shoot.set_machine_phase(machine, "Failed").await?;
        }
        shoot.free_at(&UP).await?;
        shoot.end().await
    })
}
