//! May a shoot be probed, by what its Cluster holds?

use chrono::{DateTime, TimeDelta};
use prober_core::gardener::GardenerShoot;
use prober_core::lifecycle::*;

use super::understood;

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
const NO_POOL: &str = r#""provider": {"workers": []}"#;

/// A shoot with this in metadata, spec and status, and this last operation.
fn shoot([metadata, spec, status]: [&str; 3], kind: &str, state: &str) -> GardenerShoot {
    let operation = format!(r#""lastOperation": {{"type": "{kind}", "state": "{state}"}}"#);
    let status = [&operation, status].join(if status.is_empty() { "" } else { ", " });
    understood(&format!(
        r#"{{"metadata": {{{metadata}}}, "spec": {{{spec}}}, "status": {{{status}}}}}"#
    ))
}

/// In a word: why it is not probed, if it is not.
fn word(shoot: &GardenerShoot, here: Option<&str>) -> &'static str {
    match lifecycle(shoot, here) {
        Lifecycle::Probe => "probe",
        Lifecycle::Stop(reason) => reason.into_str(),
        Lifecycle::Wait(reason) => reason.into_str(),
    }
}

#[test]
fn what_a_shoot_says_of_itself_decides_whether_it_is_probed() {
    let deleted = r#""deletionTimestamp": "2022-05-05T08:34:05Z""#;
    let (asleep, awake) = (r#""hibernated": true"#, r#""hibernated": false"#);
    let own = |own: &str| {
        format!(
            r#""provider": {{"workers": [{{"name": "a"}}, {{"name": "b", "controlPlane": {own}}}]}}"#
        )
    };
    let enabled = |enabled: &str| format!(r#"{POOL}, "hibernation": {{"enabled": {enabled}}}"#);
    for (metadata, spec, status, expected) in [
        ("", POOL, "", "probe"),
        ("", NO_POOL, "", "workerless"),
        ("", r#""provider": {"workers": null}"#, "", "workerless"),
        ("", &own("{}"), "", "self_hosted"),
        (
            "",
            &own(r#"{"backup": {"provider": "local"}}"#),
            "",
            "self_hosted",
        ),
        ("", &own("null"), "", "probe"),
        ("", &enabled("true"), awake, "hibernated"),
        ("", &enabled("true"), asleep, "hibernated"),
        ("", &enabled("false"), asleep, "waking_up"),
        ("", POOL, asleep, "waking_up"),
        ("", &enabled("false"), awake, "probe"),
        ("", &enabled("null"), "", "probe"),
        (deleted, POOL, "", "deleting"),
        // Every reason to stop outweighs every reason to wait.
        ("", NO_POOL, asleep, "workerless"),
        (deleted, NO_POOL, asleep, "deleting"),
    ] {
        let shoot = shoot([metadata, spec, status], "Create", "Succeeded");
        assert_eq!(
            word(&shoot, Some("here")),
            expected,
            "{metadata} {spec} {status}"
        );
    }
}

#[test]
fn the_last_operation_decides_whether_a_shoot_is_probed() {
    for (kind, done, otherwise) in [
        ("Create", "probe", "not_yet_reconciled"),
        ("Restore", "probe", "not_yet_reconciled"),
        ("Reconcile", "probe", "probe"),
        ("LiveMigrate", "probe", "probe"),
        ("Migrate", "migrating", "migrating"),
        // Fault 56: nothing starts and nothing stops.
        ("Delete", "not_yet_reconciled", "not_yet_reconciled"),
        ("", "not_yet_reconciled", "not_yet_reconciled"),
        ("ForceReconcile", "not_yet_reconciled", "not_yet_reconciled"),
        ("reconcile", "not_yet_reconciled", "not_yet_reconciled"),
    ] {
        for state in STATES {
            let expected = if state == STATES[0] { done } else { otherwise };
            let shoot = shoot(["", POOL, ""], kind, state);
            assert_eq!(word(&shoot, Some("here")), expected, "{kind} {state}");
        }
    }
    for unknown in [
        r#", "status": {"lastOperation": {}}"#,
        r#", "status": null"#,
        "",
    ] {
        let shoot = understood(&format!(r#"{{"spec": {{{POOL}}}{unknown}}}"#));
        assert_eq!(
            word(&shoot, Some("here")),
            "not_yet_reconciled",
            "{unknown}"
        );
    }
}

#[test]
fn the_seed_that_a_shoot_is_on_probes_it() {
    for (spec, status, here, expected) in [
        ("", "", Some("here"), "probe"),
        // In a live migration one seed at any time, the source first.
        ("target", "source", Some("source"), "probe"),
        ("target", "source", Some("target"), "migrating"),
        ("target", "target", Some("source"), "migrating"),
        ("target", "target", Some("target"), "probe"),
        ("elsewhere", "", Some("here"), "migrating"),
        // It is taken for ours while one of the seeds is not known.
        ("a", "b", None, "probe"),
    ] {
        let in_spec = format!(r#"{POOL}, "seedName": "{spec}""#);
        let in_status = format!(r#""seedName": "{status}""#);
        for kind in ["Create", "Reconcile", "LiveMigrate"] {
            let shoot = shoot(["", &in_spec, &in_status], kind, "Succeeded");
            assert_eq!(
                word(&shoot, here),
                expected,
                "{kind} {spec} {status} {here:?}"
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
        [("own".to_owned(), own.into())].into()
    );
}

#[test]
fn a_shoot_is_in_operation_while_it_is_reconciled_and_some_time_after_any_success() {
    let now = DateTime::UNIX_EPOCH + TimeDelta::minutes(2);
    for kind in ["Create", "Restore", "Reconcile", "LiveMigrate"] {
        for state in STATES {
            // It may just have been made, or woken up.
            let is_under_way = state != STATES[0];
            for (updated, expected) in [
                (r#""1970-01-01T00:01:29Z""#, true),
                (r#""1970-01-01T00:01:30Z""#, is_under_way),
                (r#""1970-01-01T00:03:00Z""#, is_under_way),
                ("null", is_under_way),
            ] {
                let shoot = understood(&format!(
                    r#"{{"status": {{"lastOperation": {{"type": "{kind}", "state": "{state}", "lastUpdateTime": {updated}}}}}}}"#
                ));
                let found = is_in_operation(&shoot, TimeDelta::seconds(30), now);
                assert_eq!(found, expected, "{kind} {state} {updated}");
            }
        }
    }
}
