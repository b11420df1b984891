//! What is done to a shoot, in words that both chance and scripts tell their stories in.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::gardener::{IGNORE, PAUSE, PROTECTED, REPLICAS};

use super::{CLUSTERS, DEPENDENTS, SoakShoot, long, resource_of};
use crate::pace::INITIAL_DELAY;
use crate::story::injected_fault::number;

impl SoakShoot {
    /// Does at once what a step says; whether it is for a shoot.
    pub fn act(&self, step: &str) -> Result<bool> {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        self.note(step);
        match verb {
            "cut" | "heal" => self.cut_all(verb == "cut"),
            "grace" => self.set_grace(number(rest)?)?,
            "hands" => self.leave_alone(rest == "off"),
            "cluster" => self.change_cluster(rest)?,
            "pause" => self.pause(&self.namespace, rest)?,
            "others" => self.others(rest)?,
            "scale-all" => self.scale_all(rest == "up"),
            "reconcile" => self.reconcile(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_grace(&self, seconds: u64) -> Result<()> {
        self.update_record(|record, now| {
            record.grace = Duration::from_secs(seconds);
            record.unsettle(now);
        });
        let period = format!("{seconds}s");
        let manager = json!({"nodeMonitorGracePeriod": period});
        let shoot = json!({"spec": {"kubernetes": {"kubeControllerManager": manager}}});
        self.change_cluster(&json!({ "shoot": shoot }).to_string())
    }

    /// Begins or ends a time in which nothing may be written or asked for, as where the shoot is
    /// paused or moves; after it all begins with the initial delay. The end is noted before it is so:
    /// the watchdog may act at once.
    fn leave_alone(&self, alone: bool) {
        self.update_record(|record, now| {
            if alone {
                record.left_alone_since = record.left_alone_since.or(Some(now));
            } else {
                record.left_alone_since = None;
                record.watched_from = now + INITIAL_DELAY;
            }
        });
    }

    /// A merge patch of the Cluster's spec, or it is deleted, or made again.
    pub fn change_cluster(&self, change: &str) -> Result<()> {
        match change {
            "gone" => drop(self.seed.delete(CLUSTERS, "", &self.namespace)?),
            "new" => self.publish()?,
            spec => {
                let spec: Value = serde_json::from_str(spec)?;
                let patch = json!({ "spec": spec });
                self.seed.patch(CLUSTERS, "", &self.namespace, &patch)?;
            }
        }
        Ok(())
    }

    /// Sets what a namespace says of a pause: nothing for "-".
    pub fn pause(&self, namespace: &str, says: &str) -> Result<()> {
        let says = (says != "-").then_some(says);
        let annotations = json!({"metadata": {"annotations": {PAUSE: says}}});
        self.seed.patch("namespaces", "", namespace, &annotations)?;
        Ok(())
    }

    /// Somebody else changes a dependent: `NAME CHANGE`, which may be its replicas.
    pub fn others(&self, words: &str) -> Result<()> {
        let (name, change) = words.split_once(' ').context("no change in it")?;
        let name = long(name);
        let annotated = |annotations: Value| json!({"metadata": {"annotations": annotations}});
        let patch = match change.split_once(' ').unwrap_or((change, "")) {
            ("gone", _) => {
                self.seed.delete(resource_of(name), &self.namespace, name)?;
                return Ok(());
            }
            ("new", "") => return self.create_dependent(name),
            ("new", replicas) => {
                self.record()
                    .wanted
                    .insert(name.to_owned(), number(replicas)?);
                return self.create_dependent(name);
            }
            ("held", _) => {
                let memory = self.wanted(name).to_string();
                let mut held = annotated(json!({REPLICAS: memory, PROTECTED: ""}));
                held["spec"] = json!({"replicas": 0});
                held
            }
            // By hand, where something is remembered.
            ("remembers", memory) => {
                self.change_dependent(name, |object| {
                    let annotations = &mut object["metadata"]["annotations"];
                    if !annotations[REPLICAS].is_null() {
                        annotations[REPLICAS] = json!(memory);
                    }
                });
                return Ok(());
            }
            ("forgets", _) => annotated(json!({REPLICAS: null})),
            ("marked", _) => annotated(json!({PROTECTED: ""})),
            ("unmarked", _) => annotated(json!({PROTECTED: null})),
            ("ignored", _) => annotated(json!({IGNORE: "true"})),
            ("heeded", _) => annotated(json!({IGNORE: null})),
            (replicas, _) => {
                let replicas = number(replicas)?;
                if replicas > 0 {
                    self.record().wanted.insert(name.to_owned(), replicas);
                }
                json!({"spec": {"replicas": replicas}})
            }
        };
        let resource = resource_of(name);
        self.seed.patch(resource, &self.namespace, name, &patch)?;
        Ok(())
    }

    /// Takes all dependents to 0, whatever they carry, or back.
    fn scale_all(&self, up: bool) {
        for name in DEPENDENTS {
            let replicas = if up { self.wanted(name) } else { 0 };
            self.change_dependent(name, |object| object["spec"]["replicas"] = json!(replicas));
        }
    }

    /// gardenlet reconciles: it keeps the replicas of what carries the marker (rule 90), and writes
    /// its own otherwise.
    fn reconcile(&self) {
        let revision = fastrand::u64(..).to_string();
        for name in DEPENDENTS {
            let wanted = self.wanted(name);
            self.change_dependent(name, |object| {
                object["metadata"]["annotations"]["example.org/checksum"] = json!(revision);
                if object["metadata"]["annotations"][PROTECTED].is_null() {
                    object["spec"]["replicas"] = json!(wanted);
                }
            });
        }
    }
}
