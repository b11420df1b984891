//! May a shoot be probed, by what its Cluster holds?

use chrono::{DateTime, TimeDelta};
use prober_core::gardener::GardenerShoot;
use prober_core::lifecycle::*;
use prober_core::verdict::PoolConditions;
use serde_json::{Value, json};

use super::understood;

const PROBE: Lifecycle = Lifecycle::Probe;
const MIGRATING: Lifecycle = Lifecycle::Stop(StopReason::Migrating);
const HIBERNATED: Lifecycle = Lifecycle::Stop(StopReason::Hibernated);
const SELF_HOSTED: Lifecycle = Lifecycle::Stop(StopReason::SelfHosted);
const WORKERLESS: Lifecycle = Lifecycle::Stop(StopReason::Workerless);
const DELETING: Lifecycle = Lifecycle::Stop(StopReason::Deleting);
const WAKING_UP: Lifecycle = Lifecycle::Wait(WaitReason::WakingUp);
const NOT_YET: Lifecycle = Lifecycle::Wait(WaitReason::NotYetReconciled);

/// States of an operation; all but the first are not its success.
const STATES: [&str; 8] = [
    "Succeeded",
    "Processing",
    "Pending",
    "Error",
    "Aborted",
    "Failed",
    "",
    "New",
];

/// A shoot with one worker pool and this last operation, in which these values are changed.
fn shoot(kind: &str, state: &str, changes: &[(&str, Value)]) -> GardenerShoot {
    let mut shoot = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "s"},
        "spec": {"provider": {"workers": [{"name": "w1"}]}},
        "status": {"lastOperation": {"type": kind, "state": state}},
    });
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        shoot.pointer_mut(parent).expect("a parent")[key] = value.clone();
    }
    understood(shoot)
}

/// What follows on this seed from a shoot whose operation is over.
fn after(kind: &str, changes: &[(&str, Value)]) -> Lifecycle {
    lifecycle(&shoot(kind, "Succeeded", changes), Some("here"))
}

const POOLS: &str = "/spec/provider/workers";
const HIBERNATES: &str = "/spec/hibernation";
const IS_HIBERNATED: &str = "/status/hibernated";
const DELETED: &str = "/metadata/deletionTimestamp";

#[test]
fn what_a_shoot_says_of_itself_decides_whether_it_is_probed() {
    let enabled = |enabled: Value| (HIBERNATES, json!({"enabled": enabled}));
    let hibernated = |is: bool| (IS_HIBERNATED, json!(is));
    let deleted = || (DELETED, json!("2022-05-05T08:34:05Z"));
    let none = || (POOLS, json!([]));
    let own = |own: Value| {
        (
            POOLS,
            json!([{"name": "a"}, {"name": "b", "controlPlane": own}]),
        )
    };
    for (changes, expected) in [
        (vec![], PROBE),
        (vec![(POOLS, json!([{"name": "a"}, {"name": "b"}]))], PROBE),
        (vec![none()], WORKERLESS),
        (vec![(POOLS, Value::Null)], WORKERLESS),
        (vec![own(json!({}))], SELF_HOSTED),
        (
            vec![own(json!({"backup": {"provider": "local"}}))],
            SELF_HOSTED,
        ),
        (vec![own(Value::Null)], PROBE),
        (vec![enabled(json!(true)), hibernated(false)], HIBERNATED),
        (vec![enabled(json!(true)), hibernated(true)], HIBERNATED),
        (vec![enabled(json!(false)), hibernated(true)], WAKING_UP),
        (vec![hibernated(true)], WAKING_UP),
        (vec![enabled(json!(false)), hibernated(false)], PROBE),
        (vec![enabled(Value::Null)], PROBE),
        (vec![deleted()], DELETING),
        // Every reason to stop outweighs every reason to wait.
        (vec![hibernated(true), none()], WORKERLESS),
        (vec![hibernated(true), none(), deleted()], DELETING),
    ] {
        assert_eq!(after("Create", &changes), expected, "{changes:?}");
    }
}

#[test]
fn the_last_operation_decides_whether_a_shoot_is_probed() {
    for (kind, done, otherwise) in [
        ("Create", PROBE, NOT_YET),
        ("Restore", PROBE, NOT_YET),
        ("Reconcile", PROBE, PROBE),
        ("LiveMigrate", PROBE, PROBE),
        ("Migrate", MIGRATING, MIGRATING),
        // Fault 56: nothing starts and nothing stops.
        ("Delete", NOT_YET, NOT_YET),
        ("", NOT_YET, NOT_YET),
        ("ForceReconcile", NOT_YET, NOT_YET),
        ("reconcile", NOT_YET, NOT_YET),
    ] {
        for state in STATES {
            let expected = if state == STATES[0] { done } else { otherwise };
            let found = lifecycle(&shoot(kind, state, &[]), Some("here"));
            assert_eq!(found, expected, "{kind} {state}");
        }
    }
    for (pointer, unknown) in [
        ("/status/lastOperation", Value::Null),
        ("/status/lastOperation", json!({})),
        ("/status", Value::Null),
    ] {
        assert_eq!(after("Create", &[(pointer, unknown)]), NOT_YET);
    }
}

#[test]
fn the_seed_that_a_shoot_is_on_probes_it() {
    for kind in ["Create", "Reconcile", "LiveMigrate"] {
        for (spec, status, here, expected) in [
            (None, None, Some("here"), PROBE),
            // In a live migration one seed at any time, the source first.
            (Some("target"), Some("source"), Some("source"), PROBE),
            (Some("target"), Some("source"), Some("target"), MIGRATING),
            (Some("target"), Some("target"), Some("source"), MIGRATING),
            (Some("target"), Some("target"), Some("target"), PROBE),
            (Some("elsewhere"), None, Some("here"), MIGRATING),
            // It is taken for ours while one of the seeds is not known.
            (Some("a"), Some("b"), None, PROBE),
        ] {
            let seeds = [
                ("/spec/seedName", json!(spec)),
                ("/status/seedName", json!(status)),
            ];
            let found = lifecycle(&shoot(kind, "Succeeded", &seeds), here);
            assert_eq!(found, expected, "{kind} {spec:?} {status:?} {here:?}");
        }
    }
}

#[test]
fn the_shoots_own_grace_and_conditions_are_its_settings() {
    // Rules 35 and 36
    let grace = json!({"kubeControllerManager": {"nodeMonitorGracePeriod": "1m20s"}});
    let conditions = json!(["DiskPressure", "MemoryPressure"]);
    let workers = json!([
        {"name": "own", "machineControllerManager": {"nodeConditions": conditions}},
        {"name": "empty", "machineControllerManager": {"nodeConditions": []}},
        {"name": "unsaid", "machineControllerManager": {"machineDrainTimeout": "2h"}},
        {"name": "plain"},
    ]);
    // Also while it waits.
    let shoot = shoot(
        "Delete",
        "Processing",
        &[("/spec/kubernetes", grace), (POOLS, workers)],
    );
    let own = ["DiskPressure", "MemoryPressure"]
        .map(str::to_owned)
        .to_vec();
    let expected = ShootSettings {
        node_monitor_grace: Some(TimeDelta::seconds(80)),
        pool_conditions: PoolConditions::from([("own".to_owned(), own)]),
    };
    assert_eq!(settings(&shoot), expected);
}

#[test]
fn a_shoot_is_in_operation_while_it_is_reconciled_and_some_time_after_any_success() {
    let now = DateTime::from_timestamp(1_700_000_000, 0).expect("a date");
    let is_in_operation = |kind, state, ago: Option<i64>| {
        let updated = ago.map(|ago| (now - TimeDelta::seconds(ago)).to_rfc3339());
        let updated = ("/status/lastOperation/lastUpdateTime", json!(updated));
        is_in_operation(&shoot(kind, state, &[updated]), TimeDelta::seconds(30), now)
    };
    for kind in ["Create", "Restore", "Reconcile", "LiveMigrate"] {
        for state in STATES {
            let is_under_way = state != STATES[0];
            assert!(is_in_operation(kind, state, Some(31)), "{kind} {state}");
            for ago in [Some(30), Some(-60), None] {
                // It may just have been made, or woken up.
                let found = is_in_operation(kind, state, ago);
                assert_eq!(found, is_under_way, "{kind} {state} {ago:?}");
            }
        }
    }
}
