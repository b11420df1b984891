//! What people and gardenlet do to the dependents.

use anyhow::Result;
use rand::RngExt;
use serde_json::{Value, json};
use testbed::gardener::{IGNORE, PROTECTED, REPLICAS};

use super::actor::Actor;
use crate::shoot::{CA, DEPENDENTS, SoakShoot, resource_of};

/// Memories that somebody writes by hand.
const MEMORIES: [&str; 9] = ["foo", "0", "-1", "", "1.5", "+2", "3", "2147483648", " 2"];

/// Somebody edits a dependent by hand.
pub(super) async fn operator(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    let name = actor.pick(DEPENDENTS);
    // A dependent that is gone stays so.
    let patch = |patch: Value| {
        drop(
            shoot
                .seed
                .patch(resource_of(name), &shoot.namespace, name, &patch),
        )
    };
    let scaled = |replicas: i64| json!({"spec": {"replicas": replicas}});
    let annotated =
        |key: &str, value: Option<&str>| json!({"metadata": {"annotations": {key: value}}});
    match actor.rng.random_range(0..8) {
        0 => {
            let replicas = actor.rng.random_range(1..=4);
            shoot.note(format!("somebody scales {name} to {replicas}"));
            shoot.record().wanted.insert(name, replicas);
            patch(scaled(replicas));
        }
        1 => {
            let zero = actor.chance(0.5);
            shoot.note(format!(
                "somebody says ignore-scaling for {name}, at 0: {zero}"
            ));
            patch(annotated(IGNORE, Some("true")));
            if zero {
                patch(scaled(0));
            }
            actor.wait(1.0..=8.0).await;
            shoot.note(format!("ignore-scaling goes from {name}"));
            patch(annotated(IGNORE, None));
        }
        2 => {
            let memory = actor.pick(MEMORIES);
            shoot.note(format!("somebody garbles the memory of {name}"));
            shoot.change_dependent(name, |object| {
                if !object["metadata"]["annotations"][REPLICAS].is_null() {
                    object["metadata"]["annotations"][REPLICAS] = json!(memory);
                }
            });
        }
        3 => {
            shoot.note(format!("somebody deletes {name}"));
            shoot
                .seed
                .delete(resource_of(name), &shoot.namespace, name)?;
            // A mandatory one that is missing holds back the later levels of a scale-up, so it is
            // soon back.
            actor
                .wait(if name == CA { 1.0..=8.0 } else { 0.0..=1.0 })
                .await;
            shoot.note(format!("{name} is recreated"));
            shoot.create_dependent(name)?;
        }
        _ => {
            let (what, change) = actor.pick([
                ("scales it to 0", scaled(0)),
                ("takes its memory", annotated(REPLICAS, None)),
                ("takes its marker", annotated(PROTECTED, None)),
                ("gives it a marker", annotated(PROTECTED, Some(""))),
            ]);
            shoot.note(format!("{name}: somebody {what}"));
            patch(change);
        }
    }
    Ok(())
}

/// gardenlet reconciles: it keeps the replicas of what carries the marker (rule 90), and writes its
/// own otherwise.
pub(super) fn reconcile(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    shoot.note("gardenlet reconciles");
    let revision = actor.rng.random::<u64>().to_string();
    for name in DEPENDENTS {
        let wanted = shoot.wanted(name);
        shoot.change_dependent(name, |object| {
            object["metadata"]["annotations"]["example.org/checksum"] = json!(revision);
            if object["metadata"]["annotations"][PROTECTED].is_null() {
                object["spec"]["replicas"] = json!(wanted);
            }
        });
    }
    Ok(())
}
