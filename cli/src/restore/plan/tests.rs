use std::sync::Arc;

use prober::config::parse;
use prober_core::replicas::{Marks, Observed};

use super::*;

/// Replicas, remembered replicas and marks of kube-controller-manager, machine-controller-manager
/// and cluster-autoscaler, and what becomes of each, in the order of their levels.
const PLANS: &str = "\
0 2 held, 0 3 held, 0 many held => to 2, to 3 after 30s, to 1
0 2 held, 0 3, 1 - => to 2, stays, stays
2 2 held, 0 3 held ignored, 0 - ignored => loses its marker, loses its marker, stays
unknown, absent, 0 2 held => is unknown, stays, to 2";

fn state(words: &str) -> DependentState {
    let words: Vec<_> = words.split(' ').collect();
    let replicas = match words[0] {
        "unknown" => return DependentState::Unknown,
        "absent" => return DependentState::Absent,
        replicas => replicas.parse().expect("a number"),
    };
    let marks = Marks {
        replicas: Some(words[1].to_owned()).filter(|memory| memory != "-"),
        held_down: words.contains(&"held"),
        ignored: words.contains(&"ignored"),
    };
    DependentState::Present(Arc::new(Observed {
        replicas,
        ready: replicas,
        marks,
        ..Observed::default()
    }))
}

fn shown(step: &PlannedStep) -> String {
    match (step.writes, step.restored_to) {
        (true, Some(replicas)) if step.delay_seconds == 0.0 => format!("to {replicas}"),
        (true, Some(replicas)) => format!("to {replicas} after {}s", step.delay_seconds),
        (true, None) => "loses its marker".to_owned(),
        (false, _) if step.is_unknown() => "is unknown".to_owned(),
        (false, _) => "stays".to_owned(),
    }
}

#[test]
fn what_is_held_down_comes_back_by_level_to_what_is_remembered_or_to_1() {
    let gardeners = parse(include_str!("../../../../config/prober.yaml"));
    let dependents = gardeners.expect("Gardener's own").config.dependents;
    for (states, expected) in PLANS.lines().filter_map(|row| row.split_once(" => ")) {
        let mut states: Vec<_> = dependents
            .iter()
            .zip(states.split(", ").map(state))
            .collect();
        // Levels decide, and not places.
        states.swap(0, 1);
        let planned: Vec<_> = plan(states).iter().map(shown).collect();
        assert_eq!(planned.join(", "), expected);
    }
}
