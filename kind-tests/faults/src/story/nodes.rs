//! Which nodes count.

use anyhow::Result;
use rand::RngExt;

use super::actor::Actor;
use super::some_nodes;
use crate::shoot::{MACHINES, NODES, SoakShoot};

/// What a node or its Machine says when it does not count, and when it does again.
#[rustfmt::skip]
const UNCOUNTED: [(&str, &str, &str); 5] = [
    (NODES, r#"{"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}]}}"#,
        r#"{"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]}}"#),
    (NODES, r#"{"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "InPlaceUpdate", "status": "True", "reason": "ReadyForUpdate"}]}}"#,
        r#"{"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "InPlaceUpdate", "status": "True", "reason": "UpdateSuccessful"}]}}"#),
    (NODES, r#"{"metadata": {"annotations": {"node.machine.sapcloud.io/not-managed-by-mcm": "1"}}}"#,
        r#"{"metadata": {"annotations": {"node.machine.sapcloud.io/not-managed-by-mcm": null}}}"#),
    (MACHINES, r#"{"status": {"currentStatus": {"phase": "Failed"}}}"#, r#"{"status": {"currentStatus": {"phase": "Running"}}}"#),
    (MACHINES, r#"{"status": {"currentStatus": {"phase": "Terminating"}}}"#, r#"{"status": {"currentStatus": {"phase": "Running"}}}"#),
];

/// Nodes, or their Machines, say for a while that they do not count.
pub(super) async fn uncounted(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    let nodes = some_nodes(shoot, actor, 0.5);
    let (resource, bad, good) = actor.pick(UNCOUNTED);
    shoot.note(format!("{} do not count: {bad}", nodes.join(", ")));
    set_counting(shoot, &nodes, resource, bad, false)?;
    actor.wait(2.0..=12.0).await;
    shoot.note("all nodes count again");
    set_counting(shoot, &nodes, resource, good, true)
}

/// A node joins for a while.
pub(super) async fn node_set(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    let name = format!("guest-{}", actor.rng.random_range(0..1_000_000));
    shoot.note(format!("{name} joins"));
    let phase = actor.seconds(0.0..=2.0);
    shoot.add_node(&name, phase)?;
    actor.wait(2.0..=12.0).await;
    shoot.note(format!("{name} leaves"));
    shoot.remove_node(&name)
}

fn set_counting(
    shoot: &SoakShoot,
    nodes: &[String],
    resource: &str,
    patch: &str,
    counts: bool,
) -> Result<()> {
    let patch = serde_json::from_str(patch)?;
    shoot.update_record(|record, now| record.unsettle(now));
    shoot.change_nodes(nodes, |node, _| node.counts = counts);
    let (store, namespace) = match resource {
        NODES => (shoot.api.store(), ""),
        _ => (&shoot.seed, &*shoot.namespace),
    };
    for name in nodes {
        store.patch(resource, namespace, name, &patch)?;
    }
    shoot.update_record(|record, now| record.unsettle(now));
    Ok(())
}
