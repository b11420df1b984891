use super::*;
use crate::tests::explore::explore;

/// More than the largest exploration has.
const LIMIT: usize = 5_000_000;

/// Everything that is explored: nothing breaks, and at least so many states were visited; else the
/// model would not reach what it should.
fn holds(name: &str, machines: Machines, leader: LeadHolder, mut left: Left, least: usize) {
    // The long form: time goes on further.
    if std::env::var("MODEL").is_ok_and(|form| form == "long") {
        left.ticks += 1;
    }
    let explored = explore(
        &machines,
        ModelWorld::start(leader, left).expect("a start").into(),
        LIMIT,
    );
    println!(
        "{name}: {left:?}: {} states, {} steps, depth {}",
        explored.states, explored.actions, explored.depth
    );
    if let Some(counterexample) = explored.counterexample {
        panic!("{counterexample}");
    }
    assert!(explored.states >= least, "only {} states", explored.states);
}

const AGREE: Machines = Machines { disagree: false };
const QUIET: Left = Left {
    turns: 0,
    edits: 0,
    crashes: 0,
    losses: 0,
    ticks: 0,
};

#[test]
fn nothing_is_lost_when_the_leader_dies() {
    holds(
        "leader dies",
        AGREE,
        LeadHolder::Replica(0),
        Left {
            turns: 1,
            crashes: 1,
            ticks: 2,
            ..QUIET
        },
        1_000,
    );
}

#[test]
fn nothing_is_lost_with_lost_requests() {
    holds(
        "losses",
        AGREE,
        LeadHolder::Replica(0),
        Left {
            turns: 1,
            losses: 1,
            ticks: 2,
            ..QUIET
        },
        1_000,
    );
}

#[test]
fn nothing_is_lost_whoever_else_writes() {
    holds(
        "edits",
        AGREE,
        LeadHolder::Replica(0),
        Left {
            turns: 1,
            edits: 1,
            ticks: 1,
            ..QUIET
        },
        1_000,
    );
}

#[test]
fn nothing_is_lost_at_a_turn_back() {
    holds(
        "turns",
        AGREE,
        LeadHolder::Replica(0),
        Left {
            turns: 2,
            ticks: 2,
            ..QUIET
        },
        1_000,
    );
}

#[test]
fn a_go_leader_and_ours_harm_nothing() {
    holds(
        "a Go leader",
        AGREE,
        LeadHolder::Go,
        Left {
            turns: 1,
            ticks: 1,
            ..QUIET
        },
        1_000,
    );
}

#[test]
fn replicas_of_two_views_do_not_fight() {
    let disagree = Machines { disagree: true };
    holds(
        "disagreement",
        disagree,
        LeadHolder::Replica(0),
        Left {
            edits: 1,
            ticks: 1,
            ..QUIET
        },
        500,
    );
    // Until a standby could undo what the leader has brought back.
    holds(
        "a long disagreement",
        disagree,
        LeadHolder::Replica(0),
        Left { ticks: 4, ..QUIET },
        500,
    );
}
