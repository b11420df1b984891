//! Shoots inside of Clusters, by the decoder that Gardener's library uses (rules 30 to 36).

use anyhow::{Context, Result, bail, ensure};
use prober::gardener::{Cluster, OperationState, OperationType, Shoot};
use proptest::prelude::*;
use reference_answers::campaign;
use serde_json::{Map, Value, json};

use super::durations::durations;

/// An object with some of these fields; now and then one in another case, which is then another field.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            let name = prop_oneof![20 => Just(name.to_owned()), 1 => Just(name.to_lowercase()), 1 => Just(name.to_uppercase())];
            prop_oneof![1 => Just(None), 4 => (name, mostly(value)).prop_map(Some)]
        })
        .collect();
    fields.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect::<Map<_, _>>())).boxed()
}

fn mostly(value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let odd = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f32>().prop_map(|number| json!(number)),
        "\\PC{0,4}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null])),
        Just(json!({"a": 1})),
    ];
    prop_oneof![24 => value, 1 => odd].boxed()
}

fn text(regex: &'static str) -> BoxedStrategy<Value> {
    regex.prop_map(Value::from).boxed()
}

fn shoots() -> impl Strategy<Value = Value> {
    let boolean = || any::<bool>().prop_map(Value::from).boxed();
    let array = |item: BoxedStrategy<Value>| prop::collection::vec(mostly(item), 0..3).prop_map(Value::from).boxed();
    let manager = object(vec![("nodeMonitorGracePeriod", durations().prop_map(Value::from).boxed())]);
    let machine = object(vec![("nodeConditions", array(text("(KernelDeadlock|DiskPressure|[A-Z]{0,3})")))]);
    let worker = object(vec![("name", text("[a-z]{0,4}")), ("machineControllerManager", machine)]);
    let spec = object(vec![
        ("hibernation", object(vec![("enabled", boolean())])),
        ("kubernetes", object(vec![("kubeControllerManager", manager), ("version", text("1\\.3[0-6]\\.[0-9]"))])),
        ("provider", object(vec![("workers", array(worker)), ("type", text("local"))])),
        ("seedName", text("[a-c]?")),
    ]);
    let operation = object(vec![
        ("type", text("(Create|Reconcile|Migrate|LiveMigrate|Restore|Delete|Unheard|create)")),
        ("state", text("(Succeeded|Processing|Failed|Error|Aborted|Pending|succeeded)")),
        ("progress", any::<u8>().prop_map(Value::from).boxed()),
    ]);
    let stamp = prop_oneof![
        8 => "20[0-9]{2}-0[1-9]-[012][1-8]T[01][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[-+]0[0-9]:[0-5]0)",
        1 => "[0-9T:Z-]{0,20}",
    ];
    object(vec![
        ("apiVersion", text("core\\.gardener\\.cloud/v1beta1")),
        ("kind", text("Shoot")),
        ("metadata", object(vec![("deletionTimestamp", stamp.prop_map(Value::from).boxed())])),
        ("spec", spec),
        ("status", object(vec![("hibernated", boolean()), ("lastOperation", operation), ("seedName", text("[a-c]?"))])),
    ])
}

#[test]
fn shoots_are_understood_as_gardeners_decoder_understands_them() -> Result<()> {
    campaign(
        3_000,
        shoots(),
        |raw| json!({"shoot": raw}),
        |raw, go| {
            let cluster: Cluster = serde_json::from_value(json!({"metadata": {"name": "shoot--a--b"}, "spec": {"shoot": raw}}))?;
            match (go, cluster.spec.shoot.context("no shoot")?) {
                (Ok(go), Ok(shoot)) => {
                    let ours = shown(&shoot, &go);
                    ensure!(go == ours, "Go reads {go}, we {ours}");
                    Ok(())
                }
                (Err(_), Err(_)) => Ok(()),
                // A grace period that is not positive would make every lease expired at once.
                (Ok(go), Err(_)) if go["grace"].as_i64().is_some_and(|nanos| nanos <= 0) => Ok(()),
                (go, ours) => bail!("Go: {go:?}, we: {ours:?}"),
            }
        },
    )
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
