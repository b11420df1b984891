use super::*;
use crate::tests::scene::{at, dependent, number, span, table, times, wall};

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
    let renewed = |seconds| LeaseClock::new(&times(seconds), wall(seconds), Some(40));
    let leases = [9.0, 2.0, 5.0].map(renewed);
    for [what, since, grace, deadline] in table(
        "
        none is marked | 33 | 40 | 39
        the first is lost | 42 | 40 | 42
        it is past: no level waits | 46 | 40 | 46
        all were lost before | 49 | 40 | 0
        no earlier where there is more time | 33 | 50 | 49
        closer to a short grace | 2.5 | 4 | 5.7
        ",
    ) {
        let grace = Grace::new(span(number(grace)));
        let found = ordering_deadline(&leases, at(number(since)), grace);
        assert_eq!(found, at(number(deadline)), "{what}");
    }
    let grace = Grace::new(span(40.0));
    assert_eq!(ordering_deadline(&[], at(0.0), grace), Moment::START);
}
