//! Which nodes have a say.

use anyhow::Result;
use serde_json::json;
use testbed::gardener::CLUSTERS;
use testbed::shoot::LEASES;
use testbed::{ShootPlan, scenario};

use crate::{USUAL, alone};

#[test]
fn who_is_no_candidate_has_no_say() -> Result<()> {
    scenario(async |bed| {
        let plan = ShootPlan {
            nodes: 10,
            ..ShootPlan::default()
        };
        let (shoot, _prober) = alone(bed, "no-say", plan, &[]).await?;
        let cluster = format!("{CLUSTERS}/{}", shoot.namespace);
        let change = async |pointer: &str, value| {
            let pointer = format!("/spec/shoot/{pointer}");
            shoot.seed.api().replace(&cluster, &pointer, &value).await
        };
        let conditions = async |conditions: &[&str]| {
            let manager = json!({"nodeConditions": conditions});
            let place = "spec/provider/workers/0/machineControllerManager";
            change(place, manager).await
        };
        conditions(&["DiskPressure", "MemoryPressure"]).await?;
        let (nodes, api) = (&shoot.nodes, shoot.plane.api());
        let begin = shoot.history().len();
        // Of the first two, which are candidates, one falls silent: no outage. Each of the others
        // alone would make it two of three.
        shoot.set_machine_phase("node-3", "Failed").await?;
        shoot.set_machine_phase("node-4", "Terminating").await?;
        let unmanaged = "node.machine.sapcloud.io/not-managed-by-mcm";
        api.annotate("/api/v1/nodes/node-5", unmanaged, Some(""))
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
        let erased = json!({"spec": {"renewTime": null}});
        api.merge(&format!("{LEASES}/node-9"), &erased).await?;
        api.delete(&format!("{LEASES}/node-10")).await?;
        shoot.after_probes(8).await?;
        shoot.untouched_since(begin)?;

        // With another reason the update makes it two of three,
        let updates = async |reason| nodes.report(7, "InPlaceUpdate", "True", reason).await;
        updates("CandidateForUpdate").await?;
        shoot.held_down(&USUAL).await?;
        updates("ReadyForUpdate").await?;
        shoot.free_at(&USUAL).await?;
        // and with other conditions of the pool it is three of four. Operations by which no probe
        // would begin do not end one.
        for (kind, state) in [
            ("Restore", "Processing"),
            ("Create", "Error"),
            ("Reconcile", "Failed"),
            ("Delete", "Pending"),
        ] {
            let operation = json!({"type": kind, "state": state, "progress": 50, "lastUpdateTime": "2025-01-01T00:00:00Z"});
            change("status/lastOperation", operation).await?;
            shoot.after_probes(2).await?;
        }
        conditions(&["PIDPressure"]).await?;
        shoot.held_down(&USUAL).await?;
        // New machines can only come when machine-controller-manager runs.
        for machine in nodes.names() {
            shoot.set_machine_phase(machine, "Failed").await?;
        }
        shoot.free_at(&USUAL).await?;
        shoot.end().await
    })
}
