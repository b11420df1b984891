use std::time::Duration;

use super::*;
use crate::tests::scene::{GRACE, at, dependent, renewed, span};

fn names(dependents: &[Dependent], direction: Direction) -> Vec<Vec<&str>> {
    let name = |id: DependentId| dependents[id.0].resource.name.as_str();
    levels(dependents, direction)
        .into_values()
        .map(|level| level.into_iter().map(name).collect())
        .collect()
}

#[test]
fn levels_ascend() {
    // The levels that Gardener configures (rule 87)
    let gardeners = [
        dependent("mcm", 1, 0),
        dependent("ca", 2, 0),
        dependent("kcm", 0, 1),
    ];
    let up = [vec!["kcm"], vec!["mcm"], vec!["ca"]];
    assert_eq!(names(&gardeners, Direction::Up), up);
    let down = [vec!["mcm", "ca"], vec!["kcm"]];
    assert_eq!(names(&gardeners, Direction::Down), down);
    let sparse = [
        dependent("last", 100, 0),
        dependent("first", -7, 0),
        dependent("middle", 0, 0),
    ];
    let up = [vec!["first"], vec!["middle"], vec!["last"]];
    assert_eq!(names(&sparse, Direction::Up), up);
    let down = [vec!["last", "first", "middle"]];
    assert_eq!(names(&sparse, Direction::Down), down, "in the file's order");
    assert!(levels(&[], Direction::Up).is_empty());
}

#[test]
fn oldest_candidate_sets_deadline() {
    let leases = [renewed(9.0), renewed(2.0), renewed(5.0)];
    #[rustfmt::skip]
    let cases = [
        ("none is marked", 33.0, Deadline::At(at(42.0 - 3.0))),
        ("the first is lost", 42.0, Deadline::At(at(45.0 - 3.0))),
        ("it is past: no level waits", 46.0, Deadline::At(at(49.0 - 3.0))),
        ("all are lost", 49.0, Deadline::Passed),
    ];
    for (what, now, deadline) in cases {
        assert_eq!(
            ordering_deadline(&leases, at(now), GRACE),
            deadline,
            "{what}"
        );
    }
    assert_eq!(ordering_deadline(&[], at(0.0), GRACE), Deadline::Passed);
    for (grace, head_start) in [(40.0, 3.0), (50.0, 3.0), (39.0, 2.925), (4.0, 0.3)] {
        assert_eq!(
            ordering_deadline(&[renewed(0.0)], at(1.0), Grace::new(span(grace))),
            Deadline::At(at(grace - head_start)),
            "a grace of {grace} s"
        );
    }
}

#[test]
fn directions_have_own_settings() {
    let mut dependent = dependent("mcm", 1, 0);
    dependent.scale_up.initial_delay = Duration::from_secs(30);
    assert_eq!(
        Direction::Up.info(&dependent).initial_delay,
        Duration::from_secs(30)
    );
    assert_eq!(
        Direction::Down.info(&dependent).initial_delay,
        Duration::ZERO
    );
}
