use super::*;

/// Everything that is explored: nothing breaks, and at least so many states were visited; else the
/// model would not reach what it should.
fn holds(disagree: bool, leader: LeadHolder, mut left: Left, least: usize) {
    // The long form: time goes on further.
    if std::env::var("MODEL").is_ok_and(|form| form == "long") {
        left.ticks += 1;
    }
    let states = explore(ModelWorld::start(disagree, leader, left).expect("a start"));
    println!("{left:?}: {states} states");
    assert!(states >= least, "only {states} states");
}

const OURS: LeadHolder = LeadHolder::Replica(0);

fn left(turns: u8, ticks: u8) -> Left {
    Left {
        turns,
        ticks,
        edits: 0,
        crashes: 0,
        losses: 0,
    }
}

#[test]
fn nothing_is_lost_when_the_leader_dies() {
    let crash = Left {
        crashes: 1,
        ..left(1, 2)
    };
    holds(false, OURS, crash, 1_000);
}

#[test]
fn nothing_is_lost_with_lost_requests() {
    let loss = Left {
        losses: 1,
        ..left(1, 2)
    };
    holds(false, OURS, loss, 1_000);
}

#[test]
fn nothing_is_lost_whoever_else_writes() {
    let edit = Left {
        edits: 1,
        ..left(1, 1)
    };
    holds(false, OURS, edit, 1_000);
}

#[test]
fn nothing_is_lost_at_a_turn_back() {
    holds(false, OURS, left(2, 2), 1_000);
}

#[test]
fn a_go_leader_and_ours_harm_nothing() {
    holds(false, LeadHolder::Go, left(1, 1), 1_000);
}

#[test]
fn replicas_of_two_views_do_not_fight() {
    let edit = Left {
        edits: 1,
        ..left(0, 1)
    };
    holds(true, OURS, edit, 500);
    // Until a standby could undo what the leader has brought back.
    holds(true, OURS, left(0, 4), 500);
}
