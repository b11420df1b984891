use std::sync::Arc;

use prober_core::replicas::{Marks, Observed};

use super::*;

/// What `status` and `explain` of other states say stands in `tests/cli/states.rs`.
#[test]
fn each_state_has_its_own_reason() {
    for (replicas, ready, memory, expected) in [
        (2, 2, None, "runs"),
        (2, 1, None, "runs, 1 of 2 replicas are ready"),
        (
            1,
            1,
            Some("1"),
            "runs, and still carries the marker of a protection: the next healthy probe removes it",
        ),
        (
            0,
            0,
            Some("foo"),
            "held down by the watchdog; it comes back with 1 replica, since what is remembered (\"foo\") cannot be used",
        ),
        (
            0,
            0,
            None,
            "at 0, but not marked by the watchdog: somebody else scaled it; a healthy probe brings it back to 1",
        ),
    ] {
        let marks = Marks {
            replicas: memory.map(str::to_owned),
            held_down: memory.is_some(),
            ignored: false,
        };
        let observed = Observed {
            replicas,
            ready,
            marks,
            ..Observed::default()
        };
        let state = DependentState::Present(Arc::new(observed));
        assert_eq!(dependent(&Dependent::default(), &state, false), expected);
    }
}
