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

/// With these replicas, of which so many are ready.
fn present(replicas: i32, ready: i32, marks: Marks) -> DependentState {
    DependentState::Present(Arc::new(Observed {
        replicas,
        ready,
        marks,
        ..Observed::default()
    }))
}

#[test]
fn each_state_has_its_own_reason() {
    let none = Marks::default;
    let held = |memory: &str| Marks {
        replicas: Some(memory.to_owned()),
        held_down: true,
        ignored: false,
    };
    let ignored = Marks {
        ignored: true,
        ..held("2")
    };
    for (state, strict, expected) in [
        (present(2, 2, none()), false, "runs"),
        (
            present(2, 1, none()),
            false,
            "runs, 1 of 2 replicas are ready",
        ),
        (
            present(1, 1, held("1")),
            false,
            "the next healthy probe removes it",
        ),
        (
            present(0, 0, held("2")),
            false,
            "held down by the watchdog while too few leases are renewed; it comes back with 2 replicas",
        ),
        (
            present(0, 0, held("foo")),
            false,
            "it comes back with 1 replica, since what is remembered (\"foo\") cannot be used",
        ),
        (
            present(0, 0, none()),
            false,
            "somebody else scaled it; a healthy probe brings it back to 1",
        ),
        (
            present(0, 0, none()),
            true,
            "with restoreOnlyHeldDown it stays so",
        ),
        (present(0, 0, ignored), false, "ignore-scaling"),
        (DependentState::Absent, false, "it does not exist"),
        (DependentState::Unknown, false, "could not be read"),
    ] {
        let why = dependent(&kcm(), &state, strict);
        assert!(why.contains(expected), "{why:?}, not {expected:?}");
    }
}
