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
fn each_level_is_a_step_of_its_own_in_ascending_order() {
    // The levels that Gardener configures (rule 87)
    let dependents = [
        dependent("mcm", 1, 0),
        dependent("ca", 2, 0),
        dependent("kcm", 0, 1),
    ];
    assert_eq!(
        names(&dependents, Direction::Up),
        [vec!["kcm"], vec!["mcm"], vec!["ca"]]
    );
    assert_eq!(
        names(&dependents, Direction::Down),
        [vec!["mcm", "ca"], vec!["kcm"]]
    );
}

#[test]
fn levels_need_be_neither_positive_nor_dense() {
    let dependents = [
        dependent("last", 100, 0),
        dependent("first", -7, 0),
        dependent("middle", 0, 0),
    ];
    assert_eq!(
        names(&dependents, Direction::Up),
        [vec!["first"], vec!["middle"], vec!["last"]]
    );
    assert_eq!(
        names(&dependents, Direction::Down),
        [vec!["last", "first", "middle"]],
        "in the file's order within a level"
    );
    assert!(levels(&[], Direction::Up).is_empty());
}

#[test]
fn neatness_ends_shortly_before_the_oldest_candidate_is_given_up() {
    let leases = [renewed(9.0), renewed(2.0), renewed(5.0)];
    assert_eq!(
        ordering_deadline(&leases, at(33.0), GRACE),
        Deadline::At(at(42.0 - 3.0))
    );
}

#[test]
fn a_candidate_that_was_given_up_already_is_not_waited_for() {
    let leases = [renewed(9.0), renewed(2.0), renewed(5.0)];
    assert_eq!(
        ordering_deadline(&leases, at(42.0), GRACE),
        Deadline::At(at(45.0 - 3.0)),
        "at its full grace the first one is lost"
    );
    assert_eq!(
        ordering_deadline(&leases, at(46.0), GRACE),
        Deadline::At(at(49.0 - 3.0)),
        "an instant that is past: no level waits"
    );
    assert_eq!(
        ordering_deadline(&leases, at(49.0), GRACE),
        Deadline::Passed,
        "all are lost: no level waits"
    );
    assert_eq!(ordering_deadline(&[], at(0.0), GRACE), Deadline::Passed);
}

#[test]
fn a_short_grace_has_a_short_head_start() {
    for (grace, head_start) in [(40.0, 3.0), (50.0, 3.0), (39.0, 2.925), (4.0, 0.3)] {
        let grace = Grace::new(span(grace));
        assert_eq!(
            ordering_deadline(&[renewed(0.0)], at(1.0), grace),
            Deadline::At(at(0.0) + grace.period() - span(head_start))
        );
    }
}

#[test]
fn each_direction_reads_its_own_settings() {
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
