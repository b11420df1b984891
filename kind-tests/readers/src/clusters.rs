//! Shoots inside of Clusters, by the decoder that Gardener's library uses (rules 30 to 36): a shoot
//! that nobody understands must not take its Cluster along (rule 30, fault 55).

use anyhow::{Context, Result, bail, ensure};
use common_core::duration::GoDuration;
use prober::gardener::{Cluster, Machine};
use prober_core::gardener::Shoot;
use prober_core::lifecycle::{Lifecycle, lifecycle, settings};
use serde_json::{Map, Value, json};

use crate::durations::{self, nanos};
use crate::{Go, Input, Source, is_one_line};

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

/// The same with some of its fields, now and then with something else in one, or with a name in
/// another case, which is then another field.
fn spoilt(source: &mut Source<'_>, value: Value) -> Value {
    if source.below(25) == 24 {
        return odd(source);
    }
    match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (name, value) in fields {
                let name = match source.below(22) {
                    20 => name.to_lowercase(),
                    21 => name.to_uppercase(),
                    _ => name,
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
    let odd = [
        json!(source.any::<i64>()),
        json!(source.any::<f32>()),
        json!(source.text("\\PC{0,4}")),
    ];
    let all = [
        Value::Null,
        json!(true),
        json!(false),
        json!([]),
        json!({}),
        json!([null]),
        json!({"a": 1}),
    ];
    source.pick(&[&all[..], &odd].concat())
}

impl Input for Raw {
    fn make(source: &mut Source<'_>) -> Self {
        if let Some(bytes) = source.raw() {
            return Self(serde_json::from_slice(bytes).unwrap_or_default());
        }
        let mut shoot = source.filled(&template());
        if let Some(grace) = shoot.pointer_mut(GRACE) {
            *grace = json!(durations::text(source));
        }
        Self(spoilt(source, shoot))
    }

    /// Whatever JSON is embedded as a shoot, the Cluster is read; and what the shoot says follows
    /// from a few of its fields.
    fn check(&self) -> Result<()> {
        let raw = &self.0;
        // Whether these are read or refused is no matter here; that they can be, is.
        let _ = (
            serde_json::from_value::<Cluster>(raw.clone()),
            serde_json::from_value::<Machine>(raw.clone()),
        );
        // Whatever is embedded as a Seed harms no shoot either.
        let odd: Cluster =
            serde_json::from_value(json!({"metadata": {}, "spec": {"seed": raw, "shoot": {}}}))?;
        ensure!(
            matches!(odd.spec.shoot, Some(Ok(_))),
            "a shoot is lost for its seed"
        );
        let spec = json!({"shoot": raw, "seed": {"metadata": {"name": SEED}}});
        let cluster = json!({"metadata": {"name": "shoot--a--b"}, "spec": spec});
        let cluster: Cluster =
            serde_json::from_value(cluster).context("one bad shoot never spoils its Cluster")?;
        let shoot = match cluster.spec.shoot {
            None => {
                ensure!(raw.is_null(), "a shoot vanished");
                return Ok(());
            }
            Some(Err(refusal)) => return is_one_line(&refusal),
            Some(Ok(shoot)) => shoot,
        };
        ensure!(raw.is_object(), "taken for a shoot");
        let workers = raw["spec"]["provider"]["workers"]
            .as_array()
            .map_or(0, Vec::len);
        ensure!(shoot.workers.len() == workers);
        ensure!(
            settings(&shoot)
                .node_monitor_grace
                .is_none_or(|grace| grace > chrono::TimeDelta::zero())
        );
        let at = |path: &str| raw.pointer(path).unwrap_or(&Value::Null);
        let operation = at("/status/lastOperation/type")
            .as_str()
            .unwrap_or_default();
        let named = |path: &str| at(path).as_str().filter(|name| !name.is_empty());
        let elsewhere = named("/status/seedName")
            .or(named("/spec/seedName"))
            .is_some_and(|name| name != SEED);
        let hibernates = at("/spec/hibernation/enabled") == &json!(true);
        match lifecycle(&shoot, cluster.spec.seed.name.as_deref()) {
            Lifecycle::Probe(settings) => {
                ensure!(workers > 0 && at("/metadata/deletionTimestamp").is_null());
                ensure!(!hibernates && at("/status/hibernated") != &json!(true));
                let finished = at("/status/lastOperation/state") == "Succeeded"
                    && matches!(operation, "Create" | "Restore");
                ensure!(
                    !elsewhere && (matches!(operation, "Reconcile" | "LiveMigrate") || finished)
                );
                ensure!(
                    settings
                        .pool_conditions
                        .values()
                        .all(|conditions| !conditions.is_empty())
                );
            }
            Lifecycle::Stop(_) => {
                let migrates = elsewhere || operation == "Migrate";
                ensure!(
                    workers == 0
                        || hibernates
                        || migrates
                        || !at("/metadata/deletionTimestamp").is_null()
                );
            }
            Lifecycle::Wait(_) => ensure!(workers > 0),
        }
        Ok(())
    }

    fn compare(&self, go: &mut Go) -> Result<()> {
        let cluster: Cluster = serde_json::from_value(
            json!({"metadata": {"name": "shoot--a--b"}, "spec": {"shoot": self.0}}),
        )?;
        match (go.ask("shoot", self.0.clone())?, cluster.spec.shoot) {
            (Ok(go), Some(Ok(shoot))) => agree(&go, &shoot),
            (Err(_), Some(Err(_))) => Ok(()),
            // A grace period that is not positive would make every lease expired at once.
            (Ok(go), Some(Err(_))) if go.pointer(GRACE).is_some_and(|grace| nanos(grace) <= 0) => {
                Ok(())
            }
            (_, None) if self.0.is_null() => Ok(()),
            (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
        }
    }
}

const GRACE: &str = "/spec/kubernetes/kubeControllerManager/nodeMonitorGracePeriod";

/// Whether what we read is what Go reads. Of an operation we know only those words that decide
/// something.
fn agree(go: &Value, shoot: &Shoot) -> Result<()> {
    let (spec, status) = (&go["spec"], &go["status"]);
    let known = |field: &str, words: &[&str]| {
        let word = status["lastOperation"][field].as_str();
        json!(word.map(|word| if words.contains(&word) { word } else { "Other" }))
    };
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let gos_workers = items(&spec["provider"]["workers"])
        .into_iter()
        .map(|worker| {
            json!([
                worker["name"],
                items(&worker["machineControllerManager"]["nodeConditions"])
            ])
        });
    let workers = shoot
        .workers
        .iter()
        .map(|worker| json!([worker.name, worker.node_conditions]));
    let grace = shoot
        .node_monitor_grace
        .and_then(|grace| grace.num_nanoseconds());
    let grace = grace.map(|nanos| GoDuration::from_nanos(nanos).to_string());
    let (kind, state) = shoot
        .last_operation
        .as_ref()
        .map(|last| (format!("{:?}", last.kind), format!("{:?}", last.state)))
        .unzip();
    for (what, ours, go) in [
        (
            "deleted",
            json!(shoot.deletion_timestamp.is_some()),
            json!(!go["metadata"]["deletionTimestamp"].is_null()),
        ),
        (
            "hibernates",
            json!(shoot.hibernation_enabled),
            json!(spec["hibernation"]["enabled"] == true),
        ),
        (
            "hibernated",
            json!(shoot.is_hibernated),
            status["hibernated"].clone(),
        ),
        ("workers", workers.collect(), gos_workers.collect()),
        (
            "grace",
            json!(grace),
            go.pointer(GRACE).cloned().unwrap_or_default(),
        ),
        (
            "operation",
            json!(kind),
            known(
                "type",
                &["Create", "Reconcile", "Migrate", "LiveMigrate", "Restore"],
            ),
        ),
        (
            "its state",
            json!(state),
            known("state", &["Succeeded", "Failed", "Aborted"]),
        ),
        (
            "seed of the spec",
            json!(shoot.spec_seed_name),
            spec["seedName"].clone(),
        ),
        (
            "seed of the status",
            json!(shoot.status_seed_name),
            status["seedName"].clone(),
        ),
    ] {
        ensure!(go == ours, "{what}: Go reads {go}, we {ours}");
    }
    Ok(())
}
