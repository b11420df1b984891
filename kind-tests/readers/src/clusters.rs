//! Shoots inside of Clusters, by the decoder that Gardener's library uses (rules 30 to 36): a shoot that nobody understands must not
//! take its Cluster along (rule 30, fault 55).

use anyhow::{Context, Result, bail, ensure};
use prober::core::lifecycle::{Lifecycle, lifecycle, settings};
use prober::gardener::{Cluster, Machine, OperationState, OperationType, Shoot};
use serde_json::{Map, Value, json};

use crate::{Go, Input, Source, durations, is_one_line};

/// The seed that the Cluster is on.
const SEED: &str = "here";

/// JSON that is embedded as a shoot.
#[derive(Debug)]
pub struct Raw(Value);

/// A shoot whose texts are patterns.
fn template() -> Value {
    let stamp = "20[0-9]{2}-0[1-9]-[012][1-8]T[01][0-9]:[0-5][0-9]:[0-5][0-9](|\\.[0-9]{1,9})(Z|[-+]0[0-9]:[0-5]0)|".repeat(8);
    json!({
        "apiVersion": "core\\.gardener\\.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"deletionTimestamp": format!("({stamp}[0-9T:Z-]{{0,20}})")},
        "spec": {
            "hibernation": {"enabled": true},
            "kubernetes": {"kubeControllerManager": {"nodeMonitorGracePeriod": ""}, "version": "1\\.3[0-6]\\.[0-9]"},
            "provider": {
                "workers": [{
                    "name": "[a-z]{0,4}",
                    "machineControllerManager": {"nodeConditions": ["(KernelDeadlock|DiskPressure|[A-Z]{0,3})"]},
                }],
                "type": "local",
            },
            "seedName": "([a-c]?|here)",
        },
        "status": {
            "hibernated": true,
            "lastOperation": {
                "type": "(Create|Reconcile|Migrate|LiveMigrate|Restore|Delete|Unheard|create)",
                "state": "(Succeeded|Processing|Failed|Error|Aborted|Pending|succeeded)",
                "progress": 0,
            },
            "seedName": "([a-c]?|here)",
        },
    })
}

/// The same with some of its fields, now and then with something else in one, or with a name in another case, which is then another field.
fn spoilt(source: &mut Source<'_>, value: Value) -> Value {
    if source.below(25) == 24 {
        return odd(source);
    }
    match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                let name = match source.below(22) {
                    0..20 => name,
                    20 => name.to_lowercase(),
                    _ => name.to_uppercase(),
                };
                if source.percent(80) {
                    kept.insert(name, spoilt(source, value));
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => items.into_iter().map(|item| spoilt(source, item)).collect(),
        value => value,
    }
}

fn odd(source: &mut Source<'_>) -> Value {
    match source.below(9) {
        0 => Value::Null,
        1 => json!(source.any::<bool>()),
        2 => json!(source.any::<i64>()),
        3 => json!(source.any::<f32>()),
        4 => json!(source.text("\\PC{0,4}")),
        _ => source.pick(&[json!([]), json!({}), json!([null]), json!({"a": 1})]),
    }
}

/// A shoot, of which most can be understood.
fn shoot(source: &mut Source<'_>) -> Value {
    let mut shoot = source.filled(&template());
    if let Some(grace) = shoot.pointer_mut("/spec/kubernetes/kubeControllerManager/nodeMonitorGracePeriod") {
        *grace = json!(durations::text(source));
    }
    spoilt(source, shoot)
}

impl Input for Raw {
    fn make(source: &mut Source<'_>) -> Self {
        let raw = source.raw().map(|bytes| serde_json::from_slice(bytes).unwrap_or_default());
        Self(raw.unwrap_or_else(|| shoot(source)))
    }

    /// Whatever JSON is embedded as a shoot, the Cluster is read; and what the shoot says follows from a few of its fields.
    fn check(&self) -> Result<()> {
        let raw = &self.0;
        // Whether these are read or refused is no matter here; that they can be, is.
        let _ = (serde_json::from_value::<Cluster>(raw.clone()), serde_json::from_value::<Machine>(raw.clone()));
        // Whatever is embedded as a Seed harms no shoot either.
        let odd: Cluster = serde_json::from_value(json!({"metadata": {}, "spec": {"seed": raw, "shoot": {}}}))?;
        ensure!(matches!(odd.spec.shoot, Some(Ok(_))), "a shoot is lost for its seed");
        let seed = json!({"metadata": {"name": SEED}});
        let cluster = json!({"metadata": {"name": "shoot--a--b"}, "spec": {"shoot": raw, "seed": seed}});
        let cluster: Cluster = serde_json::from_value(cluster).context("one bad shoot never spoils its Cluster")?;
        let shoot = match cluster.spec.shoot {
            None => {
                ensure!(raw.is_null(), "a shoot vanished");
                return Ok(());
            }
            Some(Err(refusal)) => return is_one_line(&refusal),
            Some(Ok(shoot)) => shoot,
        };
        ensure!(raw.is_object(), "taken for a shoot");
        let workers = raw["spec"]["provider"]["workers"].as_array().map_or(0, Vec::len);
        ensure!(shoot.spec.provider.workers.len() == workers);
        ensure!(settings(&shoot).node_monitor_grace.is_none_or(|grace| grace > chrono::TimeDelta::zero()));
        let at = |path: &str| raw.pointer(path).unwrap_or(&Value::Null);
        let operation = at("/status/lastOperation/type").as_str().unwrap_or_default();
        let named = |path: &str| at(path).as_str().filter(|name| !name.is_empty());
        let elsewhere = named("/status/seedName").or(named("/spec/seedName")).is_some_and(|name| name != SEED);
        let hibernates = at("/spec/hibernation/enabled") == &json!(true);
        match lifecycle(&shoot, cluster.spec.seed.name.as_deref()) {
            Lifecycle::Probe(settings) => {
                ensure!(workers > 0 && at("/metadata/deletionTimestamp").is_null());
                ensure!(!hibernates && at("/status/hibernated") != &json!(true));
                let finished = at("/status/lastOperation/state") == "Succeeded" && matches!(operation, "Create" | "Restore");
                ensure!(!elsewhere && (matches!(operation, "Reconcile" | "LiveMigrate") || finished));
                ensure!(settings.pool_conditions.values().all(|conditions| !conditions.is_empty()));
            }
            Lifecycle::Stop(_) => {
                let migrates = elsewhere || operation == "Migrate";
                ensure!(workers == 0 || hibernates || migrates || !at("/metadata/deletionTimestamp").is_null());
            }
            Lifecycle::Wait(_) => ensure!(workers > 0),
        }
        Ok(())
    }

    fn compare(&self, go: &mut Go) -> Result<()> {
        let cluster: Cluster = serde_json::from_value(json!({"metadata": {"name": "shoot--a--b"}, "spec": {"shoot": self.0}}))?;
        match (go.ask(&json!({"shoot": self.0}))?, cluster.spec.shoot) {
            (Ok(go), Some(Ok(shoot))) => {
                let ours = shown(&shoot, &go);
                ensure!(go == ours, "Go reads {go}, we {ours}");
                Ok(())
            }
            (Err(_), Some(Err(_))) => Ok(()),
            // A grace period that is not positive would make every lease expired at once.
            (Ok(go), Some(Err(_))) if go["grace"].as_i64().is_some_and(|nanos| nanos <= 0) => Ok(()),
            (_, None) if self.0.is_null() => Ok(()),
            (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
        }
    }
}

/// What we read, in the words of the Go program. Of an operation only those words are kept that decide something.
fn shown(shoot: &Shoot, go: &Value) -> Value {
    let workers: Vec<Value> = shoot
        .spec
        .provider
        .workers
        .iter()
        .map(|worker| json!({"name": worker.name, "conditions": worker.machine_controller_manager.as_ref().map(|manager| &manager.node_conditions)}))
        .collect();
    let operation = shoot.status.last_operation.as_ref().map(|operation| {
        let told = |index: usize, known: &[&str]| {
            let word = go["operation"][index].as_str().unwrap_or_default();
            if known.contains(&word) { String::from("another") } else { word.to_owned() }
        };
        let kind = match operation.kind {
            OperationType::Create => "Create".to_owned(),
            OperationType::Reconcile => "Reconcile".to_owned(),
            OperationType::Migrate => "Migrate".to_owned(),
            OperationType::LiveMigrate => "LiveMigrate".to_owned(),
            OperationType::Restore => "Restore".to_owned(),
            OperationType::Other => told(0, &["Create", "Reconcile", "Migrate", "LiveMigrate", "Restore"]),
        };
        let state = match operation.state {
            OperationState::Succeeded => "Succeeded".to_owned(),
            OperationState::Failed => "Failed".to_owned(),
            OperationState::Aborted => "Aborted".to_owned(),
            OperationState::Other => told(1, &["Succeeded", "Failed", "Aborted"]),
        };
        [kind, state]
    });
    json!({
        "deleted": shoot.metadata.deletion_timestamp.is_some(),
        "hibernates": shoot.spec.hibernation_enabled(),
        "hibernated": shoot.status.is_hibernated,
        "workers": workers,
        "grace": shoot.spec.node_monitor_grace().and_then(|grace| grace.num_nanoseconds()),
        "operation": operation,
        "seeds": [shoot.spec.seed_name, shoot.status.seed_name],
    })
}
