//! What people and gardenlet do to the dependents.

use anyhow::Result;
use serde_json::{Value, json};
use testbed::api::gardener::{self, IGNORE, PROTECTED, REPLICAS};

use super::Story;
use crate::shoot::{CA, DEPLOYMENTS, KCM, MCM};

/// Memories that somebody writes by hand.
const MEMORIES: [&str; 9] = ["foo", "0", "-1", "", "1.5", "+2", "3", "2147483648", " 2"];

fn annotate(object: &mut Value, key: &str, value: Option<&str>) {
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    let Some(annotations) = object["metadata"]["annotations"].as_object_mut() else { return };
    match value {
        Some(value) => drop(annotations.insert(key.to_owned(), json!(value))),
        None => drop(annotations.remove(key)),
    }
}

impl Story {
    /// Somebody edits a dependent by hand.
    pub(super) async fn operator(&mut self) -> Result<()> {
        let name = *self.rng.pick(&[KCM, MCM, CA]);
        let shoot = self.shoot.clone();
        match self.rng.number(0..=7) {
            0 => {
                let replicas = self.rng.number(1..=4);
                shoot.note(format!("somebody scales {name} to {replicas}"));
                shoot.want(name, replicas);
                shoot.change_deployment(name, |object| object["spec"]["replicas"] = json!(replicas));
            }
            1 => {
                shoot.note(format!("somebody scales {name} to 0"));
                shoot.change_deployment(name, |object| object["spec"]["replicas"] = json!(0));
            }
            2 => {
                let zero = self.rng.chance(0.5);
                shoot.note(format!("somebody says ignore-scaling for {name}, at 0: {zero}"));
                shoot.change_deployment(name, |object| annotate(object, IGNORE, Some("true")));
                if zero {
                    shoot.change_deployment(name, |object| object["spec"]["replicas"] = json!(0));
                }
                let time = self.rng.seconds(1.0, 8.0);
                self.pause(time).await;
                shoot.note(format!("ignore-scaling goes from {name}"));
                shoot.change_deployment(name, |object| annotate(object, IGNORE, None));
            }
            3 => {
                let memory = *self.rng.pick(&MEMORIES);
                shoot.note(format!("somebody garbles the memory of {name}"));
                shoot.change_deployment(name, |object| {
                    if !object["metadata"]["annotations"][REPLICAS].is_null() {
                        annotate(object, REPLICAS, Some(memory));
                    }
                });
            }
            4 => {
                shoot.note(format!("somebody takes the memory from {name}"));
                shoot.change_deployment(name, |object| annotate(object, REPLICAS, None));
            }
            5 => {
                shoot.note(format!("somebody takes the marker from {name}"));
                shoot.change_deployment(name, |object| annotate(object, PROTECTED, None));
            }
            6 => {
                shoot.note(format!("somebody sets a marker on {name}"));
                shoot.change_deployment(name, |object| annotate(object, PROTECTED, Some("")));
            }
            _ => {
                // A mandatory one that is missing holds back the later levels of a scale-up, so it is soon back.
                let time = if name == CA { self.rng.seconds(1.0, 8.0) } else { self.rng.seconds(0.0, 1.0) };
                shoot.note(format!("somebody deletes {name}"));
                shoot.seed.delete(DEPLOYMENTS, &shoot.namespace, name)?;
                self.pause(time).await;
                shoot.note(format!("{name} is made anew"));
                shoot.seed.create(gardener::deployment(&shoot.namespace, name, shoot.wanted(name)))?;
            }
        }
        Ok(())
    }

    /// gardenlet reconciles: it keeps the replicas of what carries the marker (rule 90), and writes its own otherwise.
    pub(super) async fn reconcile(&mut self) -> Result<()> {
        self.shoot.note("gardenlet reconciles");
        let revision = self.rng.number(0..=i64::MAX).to_string();
        for name in [KCM, MCM, CA] {
            let wanted = self.shoot.wanted(name);
            self.shoot.change_deployment(name, |object| {
                annotate(object, "example.org/checksum", Some(&revision));
                if object["metadata"]["annotations"][PROTECTED].is_null() {
                    object["spec"]["replicas"] = json!(wanted);
                }
            });
        }
        Ok(())
    }

    /// Takes all dependents to 0, whatever they carry, or back.
    pub(super) fn scale_all(&self, up: bool) {
        for name in [KCM, MCM, CA] {
            let replicas = if up { self.shoot.wanted(name) } else { 0 };
            self.shoot.change_deployment(name, |object| object["spec"]["replicas"] = json!(replicas));
        }
    }
}
