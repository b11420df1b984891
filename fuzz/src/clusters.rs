//! Clusters: a shoot that nobody understands must not take its Cluster along (rule 30, fault 55).

use prober::core::lifecycle::{Lifecycle, lifecycle, settings};
use prober::gardener::{Cluster, Machine};
use serde_json::{Value, json};

/// The seed that the Cluster is on.
const SEED: &str = "here";

/// Whatever JSON is embedded as a shoot, the Cluster is read; and what the shoot says follows from a few of its fields.
pub fn check(text: &str) {
    let Ok(raw) = serde_json::from_str::<Value>(text) else { return };
    // Whether these are read or refused is no matter here; that they can be, is.
    let _ = (serde_json::from_value::<Cluster>(raw.clone()), serde_json::from_value::<Machine>(raw.clone()));
    // Whatever is embedded as a Seed harms no shoot either.
    let odd: Cluster = serde_json::from_value(json!({"metadata": {}, "spec": {"seed": raw, "shoot": {}}})).expect("a Cluster");
    assert!(matches!(odd.spec.shoot, Some(Ok(_))));
    let seed = json!({"metadata": {"name": SEED}});
    let cluster = json!({"metadata": {"name": "shoot--a--b"}, "spec": {"shoot": raw, "seed": seed}});
    let cluster: Cluster = serde_json::from_value(cluster).expect("one bad shoot never spoils its Cluster");
    let shoot = match cluster.spec.shoot {
        None => return assert!(raw.is_null(), "a shoot vanished"),
        Some(Err(refusal)) => return super::must_be_one_line(&refusal),
        Some(Ok(shoot)) => shoot,
    };
    assert!(raw.is_object(), "{raw} was taken for a shoot");
    let workers = raw["spec"]["provider"]["workers"].as_array().map_or(0, Vec::len);
    assert_eq!(shoot.spec.provider.workers.len(), workers);
    assert!(settings(&shoot).node_monitor_grace.is_none_or(|grace| grace > chrono::TimeDelta::zero()));
    let at = |path: &str| raw.pointer(path).unwrap_or(&Value::Null);
    let operation = at("/status/lastOperation/type").as_str().unwrap_or_default();
    let named = |path: &str| at(path).as_str().filter(|name| !name.is_empty());
    let elsewhere = named("/status/seedName").or(named("/spec/seedName")).is_some_and(|name| name != SEED);
    match lifecycle(&shoot, cluster.spec.seed.name.as_deref()) {
        Lifecycle::Probe(settings) => {
            assert!(workers > 0 && at("/metadata/deletionTimestamp").is_null());
            assert!(at("/spec/hibernation/enabled") != &json!(true) && at("/status/hibernated") != &json!(true));
            let finished = at("/status/lastOperation/state") == "Succeeded" && matches!(operation, "Create" | "Restore");
            assert!(!elsewhere && (matches!(operation, "Reconcile" | "LiveMigrate") || finished));
            assert!(settings.pool_conditions.values().all(|conditions| !conditions.is_empty()));
        }
        Lifecycle::Stop(_) => {
            let hibernates = at("/spec/hibernation/enabled") == &json!(true);
            let migrates = elsewhere || operation == "Migrate";
            assert!(workers == 0 || hibernates || migrates || !at("/metadata/deletionTimestamp").is_null());
        }
        Lifecycle::Wait(_) => assert!(workers > 0),
    }
}
