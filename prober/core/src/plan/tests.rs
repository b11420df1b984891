use super::*;
use crate::tests::scene::{at, dependent, renewed, span};

#[test]
fn levels_ascend() {
    // The levels that Gardener configures (rule 87), and sparse ones; those of one level are in the
    // file's order.
    let gardeners = [
        dependent("mcm", 1, 0),
        dependent("ca", 2, 0),
        dependent("kcm", 0, 1),
    ];
    let sparse = [
        dependent("last", 100, 0),
        dependent("first", -7, 0),
        dependent("middle", 0, 0),
    ];
    for (dependents, direction, expected) in [
        (&gardeners[..], Direction::Up, "kcm; mcm; ca"),
        (&gardeners, Direction::Down, "mcm, ca; kcm"),
        (&sparse, Direction::Up, "first; middle; last"),
        (&sparse, Direction::Down, "last, first, middle"),
        (&[], Direction::Up, ""),
    ] {
        let name = |id: DependentId| dependents[id.0].resource.name.as_str();
        let level = |ids: Vec<_>| ids.into_iter().map(name).collect::<Vec<_>>().join(", ");
        let levels = levels(dependents, direction).into_values().map(level);
        assert_eq!(levels.collect::<Vec<_>>().join("; "), expected);
    }
}

#[test]
fn oldest_candidate_sets_deadline() {
    let leases = [renewed(9.0), renewed(2.0), renewed(5.0)];
    #[rustfmt::skip]
    let cases = [
        ("none is marked", &leases[..], 33.0, 40.0, Deadline::At(at(42.0 - 3.0))),
        ("the first is lost", &leases, 42.0, 40.0, Deadline::At(at(45.0 - 3.0))),
        ("it is past: no level waits", &leases, 46.0, 40.0, Deadline::At(at(49.0 - 3.0))),
        ("all are lost", &leases, 49.0, 40.0, Deadline::Passed),
        ("none counts", &[], 0.0, 40.0, Deadline::Passed),
        ("no earlier where there is more time", &leases, 33.0, 50.0, Deadline::At(at(52.0 - 3.0))),
        ("closer to a short grace", &leases, 2.5, 4.0, Deadline::At(at(6.0 - 0.3))),
    ];
    for (what, leases, now, grace, deadline) in cases {
        let grace = Grace::new(span(grace));
        assert_eq!(
            ordering_deadline(leases, at(now), grace),
            deadline,
            "{what}"
        );
    }
}
