use prober_core::config::Dependent;
use prober_core::replicas::{Marks, Observed, Unscalable};
use std::sync::Arc;

use super::*;
use crate::tests::{CONFIG, at, nothing_found};

#[test]
fn the_oldest_leases_are_shown_oldest_first_and_then_by_name() {
    let names = ["e", "d", "c", "b", "a"].into_iter().cycle().take(30);
    let lease = |(number, node): (usize, &'static str)| CountedLease {
        node,
        age: TimeDelta::seconds([3, 0, 0, 2].get(number).copied().unwrap_or(0)),
        state: LeaseState::Valid,
        skew: TimeDelta::zero(),
    };
    let leases = names.enumerate().map(lease).collect();
    let shown = Found::new(&nothing_found(), leases).leases;
    let nodes: Vec<_> = shown.iter().map(|lease| lease.node.as_str()).collect();
    assert_eq!((nodes.len(), &nodes[..4]), (20, &["e", "b", "a", "a"][..]));
}

#[test]
fn a_probe_is_overdue_a_second_after_its_time() {
    let mut shoot = ShootView {
        probe: Some(ProbeStatus::new(at(10.0))),
        ..ShootView::default()
    };
    let mut shown = |second| {
        shoot.stamp(TimeDelta::seconds(30), at(second));
        let probe = shoot.probe.as_ref().expect("a probe");
        (probe.next_probe_in_seconds, probe.overdue)
    };
    let expected = [(3, false), (-31, false), (-31, true)];
    assert_eq!([7.0, 41.0, 41.1].map(&mut shown), expected);
}

#[test]
fn a_dependent_is_shown_as_the_seed_shows_it() {
    let observed = |replicas, saved: &str, held_down, ignored| {
        let marks = Marks {
            replicas: (!saved.is_empty()).then(|| saved.to_owned()),
            held_down,
            ignored,
        };
        DependentState::Present(Arc::new(Observed {
            replicas,
            marks,
            ..Observed::default()
        }))
    };
    let unscalable = DependentState::Unscalable(Unscalable::NoReplicas);
    let rows = [
        (false, DependentState::Unknown, Condition::Unknown),
        (false, DependentState::Absent, Condition::Missing),
        (true, DependentState::Absent, Condition::Absent),
        (false, unscalable.clone(), Condition::Unscalable),
        (true, unscalable, Condition::Absent),
        (false, observed(2, "", false, false), Condition::Running),
        (false, observed(0, "2", true, false), Condition::HeldDown),
        (false, observed(0, "2", false, false), Condition::AtZero),
        (false, observed(0, "2", true, true), Condition::Ignored),
    ];
    for (optional, state, condition) in rows {
        let config = crate::config::parse(CONFIG).expect("a config").config;
        let dependent = Dependent {
            optional,
            ..config.dependents[0].clone()
        };
        let mut shown = ShownDependent::new(&dependent);
        shown.show(&dependent, &state);
        assert_eq!(shown.condition, condition, "{state:?}");
        let saved = matches!(condition, Condition::HeldDown | Condition::AtZero);
        assert!(!saved || shown.remembered.as_deref() == Some("2"));
    }
}
