use std::sync::Arc;

use prober_core::replicas::{Marks, Observed};

use super::*;
use crate::config::parse;

fn kcm() -> Dependent {
    parse(include_str!("../../../../config/prober.yaml"))
        .expect("Gardener's own")
        .config
        .dependents
        .remove(0)
}

fn observed(
    replicas: i32,
    ready: i32,
    memory: Option<&str>,
    held_down: bool,
    ignored: bool,
) -> DependentState {
    let marks = Marks {
        replicas: memory.map(str::to_owned),
        held_down,
        ignored,
    };
    DependentState::Present(Arc::new(Observed {
        replicas,
        ready,
        marks,
        ..Observed::default()
    }))
}

#[test]
fn each_way_to_be_at_0_has_its_own_reason() {
    for (state, strict, expected) in [
        (
            observed(0, 0, Some("2"), true, false),
            false,
            "held down by the watchdog while too few leases are renewed; it comes back with 2 replicas",
        ),
        (
            observed(0, 0, Some("foo"), true, false),
            false,
            "it comes back with 1 replica, since what is remembered (\"foo\") cannot be used",
        ),
        (
            observed(0, 0, None, false, false),
            false,
            "somebody else scaled it; a healthy probe brings it back to 1",
        ),
        (
            observed(0, 0, None, false, false),
            true,
            "with restoreOnlyHeldDown it stays so",
        ),
        (
            observed(0, 0, Some("2"), true, true),
            false,
            "ignore-scaling",
        ),
        (DependentState::Absent, false, "it does not exist"),
        (DependentState::Unknown, false, "could not be read"),
    ] {
        let why = dependent(&kcm(), &state, strict);
        assert!(why.contains(expected), "{why:?}, not {expected:?}");
    }
}

#[test]
fn what_runs_is_said_to_run() {
    assert_eq!(
        dependent(&kcm(), &observed(2, 2, None, false, false), false),
        "runs"
    );
    assert_eq!(
        dependent(&kcm(), &observed(2, 1, None, false, false), false),
        "runs, 1 of 2 replicas are ready"
    );
    assert!(
        dependent(&kcm(), &observed(1, 1, Some("1"), true, false), false)
            .contains("the next healthy probe removes it")
    );
}
