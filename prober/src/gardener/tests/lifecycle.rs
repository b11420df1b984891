//! May a shoot be probed, by what its Cluster holds?

use chrono::{DateTime, TimeDelta};
use prober_core::gardener::GardenerShoot;
use prober_core::lifecycle::*;

use super::understood;

/// States of an operation; all but the first are not its success.
const STATES: [&str; 4] = ["Succeeded", "Processing", "Failed", ""];

/// A shoot of which this is so, and with this last operation.
fn shoot(words: &str, kind: &str, state: &str) -> GardenerShoot {
    let operation = format!(r#""lastOperation": {{"type": "{kind}", "state": "{state}"}}"#);
    // In its metadata, spec and status.
    let mut parts = [vec![], vec![], vec![operation]];
    for word in words.split(", ") {
        let (part, field) = match word {
            "deleted" => (0, r#""deletionTimestamp": "2022-05-05T08:34:05Z""#),
            "pool" => (1, r#""provider": {"workers": [{"name": "w1"}]}"#),
            "no pool" => (1, r#""provider": {"workers": []}"#),
            "null for pools" => (1, r#""provider": {"workers": null}"#),
            "pool of its own" => (
                1,
                r#""provider": {"workers": [{"name": "a"}, {"name": "b", "controlPlane": {}}]}"#,
            ),
            "pool of nobody's own" => (
                1,
                r#""provider": {"workers": [{"name": "a"}, {"name": "b", "controlPlane": null}]}"#,
            ),
            "to sleep" => (1, r#""hibernation": {"enabled": true}"#),
            "not to sleep" => (1, r#""hibernation": {"enabled": false}"#),
            "null for sleep" => (1, r#""hibernation": {"enabled": null}"#),
            "asleep" => (2, r#""hibernated": true"#),
            "awake" => (2, r#""hibernated": false"#),
            _ => panic!("{word}"),
        };
        parts[part].push(field.to_owned());
    }
    let [metadata, spec, status] = parts.map(|part| part.join(", "));
    understood(&format!(
        r#"{{"metadata": {{{metadata}}}, "spec": {{{spec}}}, "status": {{{status}}}}}"#
    ))
}

#[test]
fn what_a_shoot_says_of_itself_decides_whether_it_is_probed() {
    // Every reason to stop outweighs every reason to wait.
    let rows = "
        pool: probed
        no pool: workerless
        null for pools: workerless
        pool of its own: self_hosted
        pool of nobody's own: probed
        pool, to sleep, awake: hibernated
        pool, to sleep, asleep: hibernated
        pool, not to sleep, asleep: waking_up
        pool, not to sleep, awake: probed
        pool, null for sleep: probed
        deleted, pool: deleting
        no pool, asleep: workerless
        deleted, no pool, asleep: deleting";
    for (words, expected) in rows.lines().filter_map(|row| row.trim().split_once(": ")) {
        let shoot = shoot(words, "Create", "Succeeded");
        assert_eq!(
            lifecycle(&shoot, Some("here")).as_str(),
            expected,
            "{words}"
        );
    }
}

#[test]
fn the_last_operation_decides_whether_a_shoot_is_probed() {
    for (kind, done, otherwise) in [
        ("Create", "probed", "not_yet_reconciled"),
        ("Restore", "probed", "not_yet_reconciled"),
        ("Reconcile", "probed", "probed"),
        ("LiveMigrate", "probed", "probed"),
        ("Migrate", "migrating", "migrating"),
        // Fault 56: nothing starts and nothing stops.
        ("Delete", "not_yet_reconciled", "not_yet_reconciled"),
        ("", "not_yet_reconciled", "not_yet_reconciled"),
        ("reconcile", "not_yet_reconciled", "not_yet_reconciled"),
    ] {
        for state in STATES {
            let expected = if state == STATES[0] { done } else { otherwise };
            let shoot = shoot("pool", kind, state);
            assert_eq!(
                lifecycle(&shoot, Some("here")).as_str(),
                expected,
                "{kind} {state}"
            );
        }
    }
    for unknown in [r#""status": {"lastOperation": {}}"#, r#""status": null"#] {
        let shoot = understood(&format!(
            r#"{{"spec": {{"provider": {{"workers": [{{"name": "w1"}}]}}}}, {unknown}}}"#
        ));
        assert_eq!(
            lifecycle(&shoot, Some("here")).as_str(),
            "not_yet_reconciled",
            "{unknown}"
        );
    }
}

#[test]
fn the_seed_that_a_shoot_is_on_probes_it() {
    for (wanted, present, here, expected) in [
        ("", "", Some("here"), "probed"),
        // In a live migration one seed at any time, the source first.
        ("target", "source", Some("source"), "probed"),
        ("target", "source", Some("target"), "migrating"),
        ("target", "target", Some("source"), "migrating"),
        ("target", "target", Some("target"), "probed"),
        ("elsewhere", "", Some("here"), "migrating"),
        // It is taken for ours while one of the seeds is not known.
        ("a", "b", None, "probed"),
    ] {
        for kind in ["Create", "Reconcile", "LiveMigrate"] {
            let shoot = understood(&format!(
                r#"{{"spec": {{"seedName": "{wanted}", "provider": {{"workers": [{{}}]}}}},
                     "status": {{"seedName": "{present}", "lastOperation": {{"type": "{kind}", "state": "Succeeded"}}}}}}"#
            ));
            assert_eq!(
                lifecycle(&shoot, here).as_str(),
                expected,
                "{kind} {wanted} {present} {here:?}"
            );
        }
    }
}

#[test]
fn the_shoots_own_grace_and_conditions_are_its_settings() {
    // Rules 35 and 36
    let shoot = understood(
        r#"{"spec": {
            "kubernetes": {"kubeControllerManager": {"nodeMonitorGracePeriod": "1m20s"}},
            "provider": {"workers": [
                {"name": "own", "machineControllerManager": {"nodeConditions": ["DiskPressure", "MemoryPressure"]}},
                {"name": "empty", "machineControllerManager": {"nodeConditions": []}},
                {"name": "unsaid", "machineControllerManager": {"machineDrainTimeout": "2h"}},
                {"name": "plain"}
            ]}
        }}"#,
    );
    // Also while it waits.
    assert_eq!(lifecycle(&shoot, None).as_str(), "not_yet_reconciled");
    let found = settings(&shoot);
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
