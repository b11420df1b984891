use std::sync::Arc;

use prober::config::parse;
use prober_core::replicas::{Marks, Observed};

use super::*;

fn dependents() -> Vec<Dependent> {
    parse(include_str!("../../../../config/prober.yaml"))
        .expect("Gardener's own")
        .config
        .dependents
}

fn observed(replicas: i32, memory: Option<&str>, held_down: bool) -> DependentState {
    let marks = Marks {
        replicas: memory.map(str::to_owned),
        held_down,
        ignored: false,
    };
    DependentState::Present(Arc::new(Observed {
        replicas,
        ready: replicas,
        marks,
        ..Observed::default()
    }))
}

fn ignored(mut dependent: DependentState) -> DependentState {
    if let DependentState::Present(observed) = &mut dependent {
        Arc::make_mut(observed).marks.ignored = true;
    }
    dependent
}

/// Name, whether it is written, and what to.
fn planned(observed: &[DependentState]) -> Vec<(String, bool, Option<i32>)> {
    // With machine-controller-manager in the first place: levels decide, and not places.
    let mut dependents = dependents();
    dependents.swap(0, 1);
    let dependents = dependents.iter().zip(observed.iter().cloned()).collect();
    plan(dependents)
        .into_iter()
        .map(|step| (step.dependent.resource.name, step.writes, step.restored_to))
        .collect()
}

fn all(writes: [(bool, Option<i32>); 3]) -> Vec<(String, bool, Option<i32>)> {
    let names = [
        "kube-controller-manager",
        "machine-controller-manager",
        "cluster-autoscaler",
    ];
    names
        .into_iter()
        .zip(writes)
        .map(|(name, (writes, to))| (name.to_owned(), writes, to))
        .collect()
}

#[test]
fn what_is_held_down_comes_back_by_level_to_what_is_remembered_or_to_1() {
    let states = [
        observed(0, Some("3"), true),
        observed(0, Some("2"), true),
        observed(0, Some("many"), true),
    ];
    let expected = all([(true, Some(2)), (true, Some(3)), (true, Some(1))]);
    assert_eq!(planned(&states), expected);
}

#[test]
fn what_is_at_0_without_the_marker_stays_there() {
    let states = [
        observed(0, Some("3"), false),
        observed(0, Some("2"), true),
        observed(1, None, false),
    ];
    assert_eq!(
        planned(&states),
        all([(true, Some(2)), (false, None), (false, None)])
    );
}

#[test]
fn what_runs_or_is_to_be_left_alone_loses_its_marker_and_keeps_its_replicas() {
    let states = [
        ignored(observed(0, Some("3"), true)),
        observed(2, Some("2"), true),
        ignored(observed(0, None, false)),
    ];
    assert_eq!(
        planned(&states),
        all([(true, None), (true, None), (false, None)])
    );
}

#[test]
fn what_could_not_be_read_is_not_taken_for_healthy() {
    let states = [
        DependentState::Unknown,
        DependentState::Absent,
        observed(0, Some("2"), true),
    ];
    let dependents = dependents();
    let plan = plan(dependents.iter().zip(states).collect());
    let shown: Vec<_> = plan
        .iter()
        .map(|step| (step.is_unknown(), step.writes))
        .collect();
    assert_eq!(shown, [(true, false), (false, false), (false, true)]);
}

#[test]
fn the_wait_of_a_level_is_shown() {
    let states = [(); 3].map(|()| observed(0, Some("1"), true));
    let dependents = dependents();
    let plan = plan(dependents.iter().zip(states).collect());
    let delays: Vec<_> = plan.iter().map(|step| step.delay_seconds).collect();
    assert_eq!(delays, [0.0, 30.0, 0.0]);
}
