//! Shoots inside of Clusters, by the decoder that Gardener's library uses (rules 30 to 36): a shoot
//! that nobody understands must not take its Cluster along (rule 30, fault 55).

use std::sync::LazyLock;

use anyhow::{Context, Result, bail, ensure};
use prober::gardener::{Cluster, Machine};
use prober_core::gardener::GardenerShoot;
use prober_core::lifecycle::settings;
use serde_json::{Value, from_str, json};
use testbed::objects::items;

use crate::durations::{self, nanos};
use crate::yaml::{self, template};
use crate::{Choices, GoProgram, ReaderInput, is_one_line};

/// JSON that is embedded as a shoot.
#[derive(Debug)]
pub struct Raw(Value);

static TEMPLATE: LazyLock<Value> =
    LazyLock::new(|| template(include_str!("../templates/clusters.yaml")));

/// The lists of a shoot that are read.
const LISTS: [&str; 3] = ["workers", "nodeConditions", "advertisedAddresses"];

/// Leaves no list in the place of anything else: serde takes its items for the fields of an object,
/// and no encoder writes one there.
fn without_odd_lists(value: Value, is_list: bool) -> Value {
    match value {
        Value::Array(_) if !is_list => Value::Null,
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|item| without_odd_lists(item, false)).collect()
        }
        Value::Object(fields) => {
            let below = |(name, value): (String, Value)| {
                let is_list = LISTS.contains(&name.as_str());
                (name, without_odd_lists(value, is_list))
            };
            fields.into_iter().map(below).collect()
        }
        value => value,
    }
}

impl ReaderInput for Raw {
    fn make(source: &mut Choices<'_>) -> Self {
        if let Some(bytes) = source.raw() {
            let raw = serde_json::from_slice(bytes).unwrap_or_default();
            return Self(without_odd_lists(raw, false));
        }
        let shoot = yaml::nearly(source, &TEMPLATE);
        let mut shoot: Value = serde_saphyr::from_str(&shoot).unwrap_or_default();
        if let Some(grace) = shoot.pointer_mut(GRACE) {
            *grace = json!(durations::text(source));
        }
        Self(without_odd_lists(shoot, false))
    }

    /// Whatever JSON is embedded as a shoot, the Cluster is read; and what the shoot says follows
    /// from a few of its fields.
    fn check(&self) -> Result<()> {
        let raw = &self.0;
        // Whether these are read or refused is no matter here; that they can be, is.
        let text = raw.to_string();
        let _ = (from_str::<Cluster>(&text), from_str::<Machine>(&text));
        // Whatever is embedded as a Seed harms no shoot either.
        let odd = cluster(json!({"seed": raw, "shoot": {}}))?;
        ensure!(
            matches!(odd.spec.shoot, Some(Ok(_))),
            "a shoot is lost for its seed"
        );
        let cluster =
            cluster(json!({"shoot": raw})).context("one bad shoot never spoils its Cluster")?;
        match cluster.spec.shoot {
            None => ensure!(raw.is_null(), "a shoot vanished"),
            Some(Err(refusal)) => is_one_line(&refusal)?,
            Some(Ok(shoot)) => follows(raw, &shoot)?,
        }
        Ok(())
    }

    fn compare(&self, go: &mut GoProgram) -> Result<()> {
        let cluster = cluster(json!({"shoot": self.0}))?;
        match (go.ask("shoot", self.0.clone())?, cluster.spec.shoot) {
            (Ok(go), Some(Ok(shoot))) => {
                let (go, ours) = (gos(&go), ours(&shoot));
                ensure!(go == ours, "Go reads {go}, we {ours}");
                Ok(())
            }
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

fn cluster(spec: Value) -> Result<Cluster> {
    let cluster = json!({"metadata": {"name": "shoot--a--b"}, "spec": spec});
    Ok(from_str(&cluster.to_string())?)
}

/// Whether what becomes of a shoot follows from its fields.
fn follows(raw: &Value, shoot: &GardenerShoot) -> Result<()> {
    ensure!(raw.is_object(), "taken for a shoot");
    let workers = items(&raw["spec"]["provider"]["workers"]).count();
    ensure!(shoot.workers.len() == workers);
    let settings = settings(shoot);
    let grace = settings.node_monitor_grace;
    ensure!(grace.is_none_or(|grace| grace > chrono::TimeDelta::zero()));
    let mut pools = settings.pool_conditions.values();
    ensure!(pools.all(|conditions| !conditions.is_empty()));
    Ok(())
}

const GRACE: &str = "/spec/kubernetes/kubeControllerManager/nodeMonitorGracePeriod";

/// What matters of a shoot as Go reads it. Of an operation we know only those words that decide
/// something.
fn gos(shoot: &Value) -> Value {
    let (spec, status) = (&shoot["spec"], &shoot["status"]);
    let known = |field: &str, words: &[&str]| {
        let word = status["lastOperation"][field].as_str();
        word.map(|word| {
            if words.contains(&word) {
                word.to_owned()
            } else {
                "Other".to_owned()
            }
        })
    };
    let worker = |worker: &Value| {
        let conditions = &worker["machineControllerManager"]["nodeConditions"];
        json!([worker["name"], items(conditions).collect::<Vec<_>>()])
    };
    json!({
        "deleted": !shoot["metadata"]["deletionTimestamp"].is_null(),
        "hibernates": spec["hibernation"]["enabled"] == true,
        "hibernated": status["hibernated"],
        "workers": items(&spec["provider"]["workers"]).map(worker).collect::<Vec<_>>(),
        "grace": shoot.pointer(GRACE).filter(|grace| !grace.is_null()).map(nanos),
        "operation": known("type", &["Create", "Reconcile", "Migrate", "LiveMigrate", "Restore"]),
        "its state": known("state", &["Succeeded", "Failed", "Aborted"]),
        "seeds": [spec["seedName"], status["seedName"]],
    })
}

/// What matters of a shoot as we read it.
fn ours(shoot: &GardenerShoot) -> Value {
    let grace = shoot
        .node_monitor_grace
        .and_then(|grace| grace.to_std().ok())
        .map(|grace| grace.as_nanos() as i64);
    let workers = shoot
        .workers
        .iter()
        .map(|worker| json!([worker.name, worker.node_conditions]));
    let operation = shoot.last_operation.as_ref();
    json!({
        "deleted": shoot.deletion_timestamp.is_some(),
        "hibernates": shoot.hibernation_enabled,
        "hibernated": shoot.is_hibernated,
        "workers": workers.collect::<Vec<_>>(),
        "grace": grace,
        "operation": operation.map(|last| format!("{:?}", last.kind)),
        "its state": operation.map(|last| format!("{:?}", last.state)),
        "seeds": [shoot.spec_seed_name, shoot.status_seed_name],
    })
}
