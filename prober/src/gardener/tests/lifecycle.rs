//! May a shoot be probed, by what its Cluster holds?

use chrono::{DateTime, TimeDelta};
use prober_core::gardener::GardenerShoot;
use prober_core::lifecycle::*;

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

/// What a shoot has in its spec that is not said otherwise: one worker pool.
const POOL: &str = r#""provider": {"workers": [{"name": "w1"}]}"#;

/// A shoot with this in metadata, spec and status, and this last operation.
fn shoot([metadata, spec, status]: [&str; 3], kind: &str, state: &str) -> GardenerShoot {
    let operation = format!(r#""lastOperation": {{"type": "{kind}", "state": "{state}"}}"#);
    let status = [&operation, status].join(if status.is_empty() { "" } else { ", " });
    let shoot = format!(
        r#"{{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {{{metadata}}}, "spec": {{{spec}}}, "status": {{{status}}}}}"#
    );
    understood(serde_json::from_str(&shoot).expect("JSON"))
}

#[test]
fn what_a_shoot_says_of_itself_decides_whether_it_is_probed() {
    let deleted = r#""deletionTimestamp": "2022-05-05T08:34:05Z""#;
    let none = r#""provider": {"workers": []}"#;
    let asleep = r#""hibernated": true"#;
    let awake = r#""hibernated": false"#;
    let own = |own: &str| {
        format!(
            r#""provider": {{"workers": [{{"name": "a"}}, {{"name": "b", "controlPlane": {own}}}]}}"#
        )
    };
    let enabled = |enabled: &str| format!(r#"{POOL}, "hibernation": {{"enabled": {enabled}}}"#);
    for (metadata, spec, status, expected) in [
        ("", POOL, "", PROBE),
        (
            "",
            r#""provider": {"workers": [{"name": "a"}, {"name": "b"}]}"#,
            "",
            PROBE,
        ),
        ("", none, "", WORKERLESS),
        ("", r#""provider": {"workers": null}"#, "", WORKERLESS),
        ("", &own("{}"), "", SELF_HOSTED),
        (
            "",
            &own(r#"{"backup": {"provider": "local"}}"#),
            "",
            SELF_HOSTED,
        ),
        ("", &own("null"), "", PROBE),
        ("", &enabled("true"), awake, HIBERNATED),
        ("", &enabled("true"), asleep, HIBERNATED),
        ("", &enabled("false"), asleep, WAKING_UP),
        ("", POOL, asleep, WAKING_UP),
        ("", &enabled("false"), awake, PROBE),
        ("", &enabled("null"), "", PROBE),
        (deleted, POOL, "", DELETING),
        // Every reason to stop outweighs every reason to wait.
        ("", none, asleep, WORKERLESS),
        (deleted, none, asleep, DELETING),
    ] {
        let shoot = shoot([metadata, spec, status], "Create", "Succeeded");
        let found = lifecycle(&shoot, Some("here"));
        assert_eq!(found, expected, "{metadata} {spec} {status}");
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
            let found = lifecycle(&shoot(["", POOL, ""], kind, state), Some("here"));
            assert_eq!(found, expected, "{kind} {state}");
        }
    }
    for unknown in [
        r#", "status": {"lastOperation": {}}"#,
        r#", "status": null"#,
        "",
    ] {
        let shoot = format!(r#"{{"spec": {{{POOL}}}{unknown}}}"#);
        let shoot = understood(serde_json::from_str(&shoot).expect("JSON"));
        assert_eq!(lifecycle(&shoot, Some("here")), NOT_YET, "{unknown}");
    }
}

#[test]
fn the_seed_that_a_shoot_is_on_probes_it() {
    for kind in ["Create", "Reconcile", "LiveMigrate"] {
        for (spec, status, here, expected) in [
            ("", "", Some("here"), PROBE),
            // In a live migration one seed at any time, the source first.
            ("target", "source", Some("source"), PROBE),
            ("target", "source", Some("target"), MIGRATING),
            ("target", "target", Some("source"), MIGRATING),
            ("target", "target", Some("target"), PROBE),
            ("elsewhere", "", Some("here"), MIGRATING),
            // It is taken for ours while one of the seeds is not known.
            ("a", "b", None, PROBE),
        ] {
            let seeds = [spec, status].map(|seed| format!(r#""seedName": "{seed}""#));
            let spec = format!("{POOL}, {}", seeds[0]);
            let shoot = shoot(["", &spec, &seeds[1]], kind, "Succeeded");
            assert_eq!(
                lifecycle(&shoot, here),
                expected,
                "{kind} {seeds:?} {here:?}"
            );
        }
    }
}

#[test]
fn the_shoots_own_grace_and_conditions_are_its_settings() {
    // Rules 35 and 36
    let spec = r#""kubernetes": {"kubeControllerManager": {"nodeMonitorGracePeriod": "1m20s"}}, "provider": {"workers": [
        {"name": "own", "machineControllerManager": {"nodeConditions": ["DiskPressure", "MemoryPressure"]}},
        {"name": "empty", "machineControllerManager": {"nodeConditions": []}},
        {"name": "unsaid", "machineControllerManager": {"machineDrainTimeout": "2h"}},
        {"name": "plain"}
    ]}"#;
    // Also while it waits.
    let found = settings(&shoot(["", spec, ""], "Delete", "Processing"));
    assert_eq!(found.node_monitor_grace, Some(TimeDelta::seconds(80)));
    let own = ["DiskPressure", "MemoryPressure"].map(str::to_owned);
    assert_eq!(
        found.pool_conditions,
        [("own".to_owned(), own.to_vec())].into()
    );
}

#[test]
fn a_shoot_is_in_operation_while_it_is_reconciled_and_some_time_after_any_success() {
    let now = DateTime::from_timestamp(1_700_000_000, 0).expect("a date");
    let is_in_operation = |kind, state, ago: Option<i64>| {
        let updated = ago.map(|ago| (now - TimeDelta::seconds(ago)).to_rfc3339());
        let operation =
            serde_json::json!({"type": kind, "state": state, "lastUpdateTime": updated});
        let shoot = understood(serde_json::json!({"status": {"lastOperation": operation}}));
        is_in_operation(&shoot, TimeDelta::seconds(30), now)
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
