//! What is done to a shoot, in words that both chance and scripts tell their stories in.

use std::time::Duration;

use anyhow::{Context, Result};
use api_server::FaultId;
use serde_json::{Value, json};
use testbed::gardener::{IGNORE, PAUSE, PROBE_SECRET, PROTECTED, REPLICAS};

use super::{CLUSTERS, DEPENDENTS, MACHINES, NODES, SoakShoot, long, resource_of};
use crate::pace::INITIAL_DELAY;
use crate::story::injected_fault::{self, number};

/// After a fault the next probe is under way within an interval of 3 s with its jitter, or a retry:
/// later by the second that a throttling API server has asked for.
const CONSEQUENCES: Duration = Duration::from_millis(1500);

/// In the place of a token.
const EXEC: &str =
    "    exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/false}\n    x:";

const DISK_PRESSURE: &str = r#"{"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "STATE"}]}}"#;
const IN_PLACE_UPDATE: &str = r#"{"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "InPlaceUpdate", "status": "True", "reason": "STATE"}]}}"#;
const NOT_MANAGED: &str =
    r#"{"metadata": {"annotations": {"node.machine.sapcloud.io/not-managed-by-mcm": STATE}}}"#;
const PHASE: &str = r#"{"status": {"currentStatus": {"phase": "STATE"}}}"#;

impl SoakShoot {
    /// Does at once what a step says; whether it is for a shoot.
    pub fn act(&self, step: &str) -> Result<bool> {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        self.note(step);
        match verb {
            "cut" | "heal" => self.change_nodes(rest, |node| node.cut = verb == "cut"),
            "joins" => self.add_node(rest, Duration::ZERO)?,
            "leaves" => self.remove_node(rest)?,
            "spoil" | "mend" => self.spoil(rest, verb == "spoil")?,
            "shoot" => drop(self.fail(rest)?),
            "secret" => self.change_secret(rest)?,
            "service" | "pods" => {
                let (service, state) = rest.split_once(' ').context("no state")?;
                match (number(service)?, state) {
                    (service, "up" | "down") => self.turn(service, state == "up")?,
                    (service, state) => self.crash(service, state == "crash"),
                }
            }
            "api" => self.update_record(|record, now| record.leave(now, rest == "away")),
            "over" => self.end_faults(),
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

    /// Its API server has this fault from now on, which keeps the watchdog from getting answers. Of
    /// some requests its id.
    pub fn fail(&self, fault: &str) -> Result<Option<FaultId>> {
        self.record().api = None;
        injected_fault::begin(&self.api, fault)
    }

    /// Answers can be had again.
    pub fn end_faults(&self) {
        injected_fault::end(&self.api);
        self.update_record(|record, now| record.api = Some(now + CONSEQUENCES));
    }

    /// The Secret is gone or useless, or has the token again; or the token in it is renewed, or the
    /// oldest one expires.
    fn change_secret(&self, change: &str) -> Result<()> {
        self.record().api = None;
        let good = self.kubeconfig();
        self.write_secret(&match change {
            "renewed" => return self.renew_token(),
            "expired" => {
                let oldest = self.record().tokens.remove(0);
                self.api.access().revoke(&oldest);
                return Ok(());
            }
            "gone" => {
                let store = &self.seed;
                store.delete("secrets", &self.namespace, PROBE_SECRET)?;
                return Ok(());
            }
            "empty" => String::new(),
            "nonsense" => "{neither: YAML nor".to_owned(),
            "plugin" => good.replace("    token:", EXEC),
            "elsewhere" => good.replace("https://127.0.0.1:", "https://127.0.0.2:"),
            _ => good,
        })
    }

    /// `WHAT NODES`: these nodes, or their Machines, say that they do not count, or that they do
    /// again.
    fn spoil(&self, words: &str, is_bad: bool) -> Result<()> {
        let (what, nodes) = words.split_once(' ').context("no nodes")?;
        let (resource, patch, bad, good) = match what {
            "pressure" => (NODES, DISK_PRESSURE, "True", "False"),
            "update" => (NODES, IN_PLACE_UPDATE, "ReadyForUpdate", "UpdateSuccessful"),
            "unmanaged" => (NODES, NOT_MANAGED, "\"1\"", "null"),
            "failed" => (MACHINES, PHASE, "Failed", "Running"),
            _ => (MACHINES, PHASE, "Terminating", "Running"),
        };
        let patch = patch.replace("STATE", if is_bad { bad } else { good });
        let patch = serde_json::from_str(&patch)?;
        self.update_record(|record, now| record.unsettle(now));
        self.change_nodes(nodes, |node| node.counts = !is_bad);
        let (store, namespace) = match resource {
            NODES => (self.api.store(), ""),
            _ => (&self.seed, &*self.namespace),
        };
        for name in nodes.split(',') {
            store.patch(resource, namespace, name, &patch)?;
        }
        Ok(())
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
