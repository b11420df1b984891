use explore::{Explored, explore};

use super::*;

/// More than the largest exploration has.
const LIMIT: usize = 20_000_000;

/// What everyday runs explore.
const ONE_OF_EACH: Left = Left { turns: 2, edits: 1, crashes: 1, losses: 1 };

fn explored(rules: Rules, mut left: Left) -> Explored {
    // The long form: somebody else writes once more.
    if std::env::var("MODEL").is_ok_and(|form| form == "long") {
        left.edits += 1;
    }
    let explored = explore(&Flow::new(rules), World::start(left), LIMIT);
    println!("{rules:?}, {left:?}: {} states, {} actions, depth {}", explored.states, explored.actions, explored.depth);
    explored
}

/// Nothing breaks, and at least so many states were visited: else the model would not reach what it should.
fn holds(rules: Rules, left: Left, least: usize) {
    let explored = explored(rules, left);
    if let Some(counterexample) = explored.counterexample {
        panic!("{counterexample}");
    }
    assert!(explored.states >= least, "only {} states", explored.states);
}

/// How it goes wrong without a rule.
fn breaks(rules: Rules, broken: &str) {
    let counterexample = explored(rules, ONE_OF_EACH).counterexample.expect("without this rule it goes wrong");
    println!("{counterexample}");
    assert!(counterexample.broken.contains(broken), "{counterexample}");
}

#[test]
fn nothing_is_lost_where_one_write_changes_all() {
    holds(OURS, ONE_OF_EACH, 75_000);
}

#[test]
fn nothing_is_lost_where_a_write_takes_two_requests() {
    holds(Rules { one_write: false, ..OURS }, ONE_OF_EACH, 400_000);
}

#[test]
fn two_leaders_at_once_harm_nothing_since_every_write_names_its_version() {
    let left = Left { crashes: 0, losses: 0, ..ONE_OF_EACH };
    holds(Rules { fence: false, ..OURS }, left, 20_000);
    holds(Rules { fence: false, one_write: false, ..OURS }, Left { edits: 0, ..left }, 20_000);
}

#[test]
fn without_preconditions_what_ran_is_lost() {
    breaks(Rules { preconditions: false, ..OURS }, "not what is remembered");
    breaks(Rules { preconditions: false, one_write: false, ..OURS }, "not what is remembered");
}

#[test]
fn without_rule_31_a_memory_is_overwritten() {
    breaks(Rules { remembers: false, ..OURS }, "overwritten");
    breaks(Rules { remembers: false, one_write: false, ..OURS }, "overwritten");
}

#[test]
fn a_memory_that_does_not_outlive_what_is_between_two_requests_is_lost() {
    breaks(Rules { memory_outlives: false, one_write: false, ..OURS }, "without a memory");
}
