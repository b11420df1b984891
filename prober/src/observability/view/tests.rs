use std::collections::BTreeSet;
use std::sync::Arc;

use prober_core::replicas::{Marks, Observed};
use serde_json::Value;

use super::*;
use crate::tests::{CONFIG, at, nothing_found};

#[test]
fn the_oldest_leases_are_shown_oldest_first_and_then_by_name() {
    let ages = [3, 0, 0, 2].into_iter().chain([0; 26]);
    let lease = |(node, age)| CountedLease {
        node,
        age: TimeDelta::seconds(age),
        state: LeaseState::Valid,
        skew: TimeDelta::zero(),
    };
    let leases = ["e", "d", "c", "b", "a"].into_iter().cycle().zip(ages);
    let shown = Found::new(&nothing_found(), leases.map(lease).collect()).leases;
    let nodes: Vec<_> = shown.iter().map(|lease| lease.node.as_str()).collect();
    assert_eq!((nodes.len(), &nodes[..4]), (20, &["e", "b", "a", "a"][..]));
}

#[test]
fn a_probe_is_overdue_a_second_after_its_time() {
    let mut shoot = ShootView {
        probe: Some(ProbeStatus {
            due: at(10.0),
            ..ProbeStatus::default()
        }),
        ..ShootView::default()
    };
    let mut shown = |second| {
        shoot.stamp(TimeDelta::seconds(30), at(second));
        shoot.probe.as_ref().expect("a probe").overdue
    };
    assert_eq!([7.0, 41.0, 41.1].map(&mut shown), [false, false, true]);
}

#[test]
fn a_dependent_is_shown_as_the_seed_shows_it() {
    let observed = |replicas, held_down, ignored| {
        let marks = Marks {
            replicas: None,
            held_down,
            ignored,
        };
        DependentState::Present(Arc::new(Observed {
            replicas,
            marks,
            ..Observed::default()
        }))
    };
    let [no_kind, no_replicas] =
        [Unscalable::NoSuchKind, Unscalable::NoReplicas].map(DependentState::Unscalable);
    let mut config = crate::config::parse(CONFIG).expect("a config").config;
    let dependent = &mut config.dependents[0];
    for (optional, state, condition) in [
        (false, DependentState::Unknown, Condition::Unknown),
        (false, DependentState::Absent, Condition::Missing),
        (true, DependentState::Absent, Condition::Absent),
        (false, no_kind.clone(), Condition::Unscalable),
        (true, no_kind, Condition::Absent),
        (true, no_replicas, Condition::Unscalable),
        (false, observed(2, false, false), Condition::Running),
        (false, observed(0, true, false), Condition::HeldDown),
        (false, observed(0, false, false), Condition::AtZero),
        (false, observed(0, true, true), Condition::Ignored),
    ] {
        dependent.optional = optional;
        let mut shown = ShownDependent::new(dependent);
        shown.show(dependent, &state);
        assert_eq!(shown.condition, condition, "{state:?}");
    }
}

/// A shoot of which all is known, as JSON.
const WHOLE: &str = r#"{
    "namespace": "n", "state": "unreadable", "unreadable": "odd", "machines": 1,
    "settings": [{"setting": "pause", "value": "true", "from": "garden"}],
    "decree": "scale_down", "owner": {"standing": "elsewhere", "name": "n.example.org", "ours": "here", "elsewhere": "there", "category": "timeout"},
    "dependents": [{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "condition": "held_down", "replicas": 0, "ready": 0,
        "remembered": "1", "since": "2026-01-02T03:00:00Z", "notScaled": "denied", "wouldBecome": 0,
        "waits": {"for": "paused", "reason": "the pause to be lifted", "until": "2026-01-02T03:00:00Z"}
    }],
    "probe": {
        "overdue": false,
        "found": {
            "secondsAgo": 1, "verdict": "scale_up", "candidates": 1, "expired": 0, "undecided": 0, "skewed": 1, "fraction": 0.6,
            "expiredAfterSeconds": 30.0, "unknownAfterSeconds": 40.0, "graceTooShort": true, "excluded": {"no_node": 1},
            "leases": [{"node": "node", "ageSeconds": 1.5, "state": "valid", "skewSeconds": -2.0}]
        },
        "failure": {"stage": "leases", "category": "timeout", "message": "late", "failedProbes": 1, "since": "2026-01-02T03:00:00Z"}
    }
}"#;

/// Keys at every depth, but those of counts by reason.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| *key != "no_node") {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

#[test]
fn each_field_is_written_as_it_is_read_and_documented() {
    let view: ShootView = serde_json::from_str(WHOLE).expect("a shoot");
    let written = serde_json::to_value(&view).expect("JSON");
    assert_eq!(written, serde_json::from_str::<Value>(WHOLE).expect("JSON"));
    let mut fields = BTreeSet::new();
    keys(&written, &mut fields);
    let page = include_str!("../../../../docs/cli.md");
    for field in fields {
        let is_there = [format!("`{field}`"), format!(".{field}`")]
            .iter()
            .any(|name| page.contains(name));
        assert!(is_there, "docs/cli.md: {field}");
    }
}
