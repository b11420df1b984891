//! May a shoot be probed, by what its Cluster holds?

use chrono::{DateTime, TimeDelta};
use prober_core::gardener::GardenerShoot;
use prober_core::lifecycle::*;
use prober_core::verdict::PoolConditions;
use serde_json::{Value, json};

use super::cluster;

fn shoot_of(shoot: &Value) -> Result<GardenerShoot, String> {
    cluster(shoot.clone()).spec.shoot.expect("a shoot")
}

/// A shoot as Gardener embeds it in its Cluster.
fn shoot(spec: Value, status: Value) -> Value {
    json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "s"}, "spec": spec, "status": status})
}

/// A shoot with one worker pool and this last operation.
fn after(kind: &str, state: &str) -> Value {
    shoot(
        json!({"provider": {"workers": [{"name": "w1"}]}}),
        json!({"lastOperation": {"type": kind, "state": state}}),
    )
}

fn of(shoot: &Value) -> Lifecycle {
    on("here", shoot)
}

/// What follows from a Cluster on this seed.
fn on(seed: &str, shoot: &Value) -> Lifecycle {
    lifecycle(&shoot_of(shoot).expect("a shoot"), Some(seed))
}

/// A shoot that moves from a seed to another, if these differ.
fn moving(shoot: Value, from: &str, to: &str) -> Value {
    changed(
        changed(shoot, "/spec/seedName", json!(to)),
        "/status/seedName",
        json!(from),
    )
}

fn changed(mut shoot: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    shoot.pointer_mut(parent).expect("a parent")[key] = value;
    shoot
}

fn probes(shoot: &Value) -> bool {
    matches!(of(shoot), Lifecycle::Probe)
}

#[test]
fn a_shoot_is_probed_if_it_has_worker_pools() {
    for (pools, probed) in [
        (json!([{"name": "a"}, {"name": "b"}]), true),
        (json!([{"name": "a"}]), true),
        (json!([]), false),
        (Value::Null, false),
    ] {
        let shoot = changed(
            after("Create", "Succeeded"),
            "/spec/provider/workers",
            pools.clone(),
        );
        assert_eq!(probes(&shoot), probed, "{pools}");
        assert!(probed || of(&shoot) == Lifecycle::Stop(StopReason::Workerless));
    }
}

#[test]
fn a_shoot_that_hosts_itself_is_left_alone() {
    let with = |own: Value| {
        let pools = json!([{"name": "a"}, {"name": "b", "controlPlane": own}]);
        of(&changed(
            after("Reconcile", "Succeeded"),
            "/spec/provider/workers",
            pools,
        ))
    };
    assert_eq!(with(json!({})), Lifecycle::Stop(StopReason::SelfHosted));
    assert_eq!(
        with(json!({"backup": {"provider": "local"}})),
        Lifecycle::Stop(StopReason::SelfHosted)
    );
    assert_eq!(with(Value::Null), Lifecycle::Probe);
}

#[test]
fn hibernation_stops_and_waking_up_waits() {
    let shoot = |enabled: Value, hibernated: Value| {
        let shoot = changed(
            after("Reconcile", "Succeeded"),
            "/spec/hibernation",
            json!({"enabled": enabled}),
        );
        of(&changed(shoot, "/status/hibernated", hibernated))
    };
    let stop = Lifecycle::Stop(StopReason::Hibernated);
    assert_eq!(shoot(json!(true), json!(false)), stop);
    assert_eq!(shoot(json!(true), json!(true)), stop);
    assert_eq!(
        shoot(json!(false), json!(true)),
        Lifecycle::Wait(WaitReason::WakingUp)
    );
    assert_eq!(
        shoot(Value::Null, json!(true)),
        Lifecycle::Wait(WaitReason::WakingUp)
    );
    for enabled in [json!(false), Value::Null] {
        assert_eq!(shoot(enabled, json!(false)), Lifecycle::Probe);
    }
}

#[test]
fn deletion_stops() {
    let shoot = changed(
        after("Reconcile", "Succeeded"),
        "/metadata/deletionTimestamp",
        json!("2022-05-05T08:34:05Z"),
    );
    assert_eq!(of(&shoot), Lifecycle::Stop(StopReason::Deleting));
}

#[test]
fn a_control_plane_that_is_being_made_is_left_alone() {
    for kind in ["Create", "Restore"] {
        for state in [
            "Processing",
            "Pending",
            "Error",
            "Aborted",
            "Failed",
            "",
            "New",
        ] {
            assert_eq!(
                of(&after(kind, state)),
                Lifecycle::Wait(WaitReason::NotYetReconciled),
                "{kind} {state}"
            );
        }
        assert!(probes(&after(kind, "Succeeded")), "{kind}");
    }
}

#[test]
fn a_migration_stops_in_every_state() {
    for state in ["", "Processing", "Succeeded", "Error", "New"] {
        assert_eq!(
            of(&after("Migrate", state)),
            Lifecycle::Stop(StopReason::Migrating),
            "{state:?}"
        );
    }
}

#[test]
fn a_reconcile_and_a_live_migration_are_probed_in_every_state() {
    for kind in ["Reconcile", "LiveMigrate"] {
        for state in [
            "",
            "Processing",
            "Succeeded",
            "Error",
            "Failed",
            "Pending",
            "New",
        ] {
            assert!(probes(&after(kind, state)), "{kind} {state:?}");
        }
    }
}

#[test]
fn in_a_live_migration_one_seed_probes_at_any_time_the_source_first() {
    let stop = Lifecycle::Stop(StopReason::Migrating);
    for state in ["Processing", "Error", "Succeeded"] {
        let begun = moving(after("LiveMigrate", state), "source", "target");
        assert!(matches!(on("source", &begun), Lifecycle::Probe), "{state}");
        assert_eq!(on("target", &begun), stop, "{state}");
        let handed_over = moving(after("LiveMigrate", state), "target", "target");
        assert_eq!(on("source", &handed_over), stop, "{state}");
        assert!(
            matches!(on("target", &handed_over), Lifecycle::Probe),
            "{state}"
        );
    }
}

#[test]
fn a_shoot_of_another_seed_is_left_alone_whatever_its_last_operation_is() {
    for kind in ["Create", "Reconcile", "Restore", "Delete", ""] {
        let elsewhere = moving(after(kind, "Succeeded"), "elsewhere", "elsewhere");
        assert_eq!(
            of(&elsewhere),
            Lifecycle::Stop(StopReason::Migrating),
            "{kind:?}"
        );
    }
    let scheduled = changed(
        after("Reconcile", "Succeeded"),
        "/spec/seedName",
        json!("elsewhere"),
    );
    assert_eq!(
        of(&scheduled),
        Lifecycle::Stop(StopReason::Migrating),
        "only the spec names a seed"
    );
}

#[test]
fn a_shoot_is_taken_for_ours_while_one_of_the_seeds_is_not_known() {
    let shoot = shoot_of(&moving(after("Reconcile", "Succeeded"), "a", "b")).expect("a shoot");
    assert!(matches!(lifecycle(&shoot, None), Lifecycle::Probe));
    assert!(
        probes(&after("Reconcile", "Succeeded")),
        "the shoot names none"
    );
}

#[test]
fn without_a_known_last_operation_nothing_starts_and_nothing_stops() {
    // Fault 56
    let waits = Lifecycle::Wait(WaitReason::NotYetReconciled);
    let spec = json!({"provider": {"workers": [{"name": "w1"}]}});
    for status in [
        json!({}),
        json!({"lastOperation": null}),
        json!({"lastOperation": {}}),
        Value::Null,
    ] {
        assert_eq!(of(&shoot(spec.clone(), status.clone())), waits, "{status}");
    }
    for kind in ["Delete", "", "ForceReconcile", "reconcile"] {
        assert_eq!(of(&after(kind, "Succeeded")), waits, "{kind:?}");
    }
    let mut absent = shoot(spec, json!({}));
    absent.as_object_mut().expect("an object").remove("status");
    assert_eq!(of(&absent), waits);
}

#[test]
fn every_reason_to_stop_outweighs_every_reason_to_wait() {
    let waking = changed(
        after("Create", "Processing"),
        "/status/hibernated",
        json!(true),
    );
    assert_eq!(of(&waking), Lifecycle::Wait(WaitReason::WakingUp));
    let workerless = changed(waking, "/spec/provider/workers", json!([]));
    assert_eq!(of(&workerless), Lifecycle::Stop(StopReason::Workerless));
    let deleting = changed(
        workerless,
        "/metadata/deletionTimestamp",
        json!("2022-05-05T08:34:05Z"),
    );
    assert_eq!(of(&deleting), Lifecycle::Stop(StopReason::Deleting));
}

#[test]
fn the_shoots_own_grace_and_conditions_are_its_settings() {
    // Rules 35 and 36
    let shoot = changed(
        after("Reconcile", "Succeeded"),
        "/spec/kubernetes",
        json!({"kubeControllerManager": {"nodeMonitorGracePeriod": "1m20s"}}),
    );
    let workers = json!([
        {"name": "own", "machineControllerManager": {"nodeConditions": ["DiskPressure", "MemoryPressure"]}},
        {"name": "empty", "machineControllerManager": {"nodeConditions": []}},
        {"name": "unsaid", "machineControllerManager": {"machineDrainTimeout": "2h"}},
        {"name": "plain"},
    ]);
    let shoot = changed(shoot, "/spec/provider/workers", workers);
    let settings = settings(&shoot_of(&shoot).expect("a shoot"));
    assert_eq!(settings.node_monitor_grace, Some(TimeDelta::seconds(80)));
    let own = vec!["DiskPressure".to_owned(), "MemoryPressure".to_owned()];
    assert_eq!(
        settings.pool_conditions,
        PoolConditions::from([("own".to_owned(), own)])
    );
}

#[test]
fn a_shoot_that_waits_has_settings_all_the_same() {
    let shoot = changed(
        after("Delete", "Processing"),
        "/spec/kubernetes",
        json!({"kubeControllerManager": {"nodeMonitorGracePeriod": "50s"}}),
    );
    let shoot = shoot_of(&shoot).expect("a shoot");
    assert_eq!(
        lifecycle(&shoot, None),
        Lifecycle::Wait(WaitReason::NotYetReconciled)
    );
    assert_eq!(
        settings(&shoot).node_monitor_grace,
        Some(TimeDelta::seconds(50))
    );
}

#[test]
fn a_shoot_is_in_operation_while_it_is_reconciled_and_some_time_after_any_success() {
    let now = DateTime::from_timestamp(1_700_000_000, 0).expect("a date");
    let updated = |ago: i64| json!((now - TimeDelta::seconds(ago)).to_rfc3339());
    let is_in_operation = |kind, state, ago: Option<i64>| {
        let shoot = after(kind, state);
        let shoot = match ago {
            Some(ago) => changed(shoot, "/status/lastOperation/lastUpdateTime", updated(ago)),
            None => shoot,
        };
        let shoot = shoot_of(&shoot).expect("a shoot");
        is_in_operation(&shoot, TimeDelta::seconds(30), now)
    };
    for state in ["Processing", "Error", "Pending", "Failed", "Aborted"] {
        assert!(
            is_in_operation("Reconcile", state, Some(1))
                && is_in_operation("LiveMigrate", state, None),
            "{state}"
        );
    }
    for kind in ["Create", "Restore", "Reconcile"] {
        assert!(is_in_operation(kind, "Succeeded", Some(31)), "{kind}");
        for ago in [Some(30), Some(-60), None] {
            assert!(
                !is_in_operation(kind, "Succeeded", ago),
                "{kind}, {ago:?}: it may just have been made, or woken up"
            );
        }
    }
}
