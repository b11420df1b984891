use common::status::Status as _;

use super::*;
use std::sync::Arc;

use crate::config::ResourceRef;
use crate::core::judgement::{Finding, SeenLease};
use crate::core::verdict::{HoldReason, Scope, Tally, Verdict};

fn found(verdict: Verdict) -> Option<Arc<Finding>> {
    Some(Arc::new(Finding { verdict, ..Finding::default() }))
}

fn failure() -> Option<Failure> {
    Some(Failure { stage: "leases", category: "timeout", message: "no answer <in time>".to_owned(), failed_probes: 3 })
}

/// A board with a shoot for each concern; the names say nothing of the order.
fn board(clock: Clock) -> (Board, Vec<crate::board::Place>) {
    let board = Board::new(clock, false);
    let mut places = Vec::new();
    for (namespace, change) in [
        ("a-healthy", (|line: &mut Line| line.finding = found(Verdict::ScaleUp(Scope::All))) as fn(&mut Line)),
        ("b-unclear", |line| line.finding = found(Verdict::Hold(HoldReason::Undecided))),
        ("c-paused", |line| line.paused = true),
        ("d-failing", |line| line.failure = failure()),
        ("e-outage", |line| {
            let lease =
                |node: &str, state| SeenLease { node: node.to_owned(), renewed: Moment::START, state, skew: TimeDelta::zero() };
            line.finding = Some(Arc::new(Finding {
                verdict: Verdict::ScaleDown,
                tally: Tally { candidates: 5, expired: 4, undecided: 1 },
                leases: vec![lease("node-1", LeaseState::Expired), lease("node-2", LeaseState::Undecided)],
                ..Finding::default()
            }));
        }),
        ("f-held", |line| {
            let kcm =
                ResourceRef { api_version: "apps/v1".into(), kind: "Deployment".into(), name: "kube-controller-manager".into() };
            line.held_down = [(kcm, Moment::START)].into();
        }),
    ] {
        board.note_state(namespace, Some("probed"));
        let place = board.place(namespace.to_owned(), clock.now());
        place.update(change);
        places.push(place);
    }
    board.note_state("g-unreadable", Some("unreadable"));
    board.note_state("h-asleep", Some("hibernated"));
    (board, places)
}

fn status(board: &Board, clock: Clock) -> ProberStatus {
    ProberStatus::new(board, clock, None, Value::Null, false)
}

#[tokio::test(start_paused = true)]
async fn what_is_most_urgent_comes_first() {
    let clock = Clock::start();
    let (board, _places) = board(clock);
    let status = status(&board, clock);
    let order: Vec<_> = status.shoots.iter().map(|shoot| shoot.namespace.as_str()).collect();
    let expected = ["f-held", "e-outage", "d-failing", "c-paused", "b-unclear", "g-unreadable", "a-healthy", "h-asleep"];
    assert_eq!(order, expected);
    assert_eq!(status.shoots_by_state, [("hibernated", 1), ("probed", 6), ("unreadable", 1)].into());
}

#[tokio::test(start_paused = true)]
async fn the_page_says_what_each_shoot_suffers_from() {
    let clock = Clock::start();
    let (board, _places) = board(clock);
    let page = status(&board, clock).body().into_string();
    for expected in [
        "Held down: <code>Deployment/kube-controller-manager</code>",
        "4 of 5 leases expired, 1 undecided (an outage from 60% on)",
        "The last 3 probes told nothing, so nothing is concluded: leases, timeout: no answer &lt;in time&gt;",
        "Paused by its operators",
        "hold undecided",
        "no shoot that can be understood",
    ] {
        assert!(page.contains(expected), "no {expected:?} in {page}");
    }
    assert!(!page.contains("Nothing is held down"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_lead_says_whether_it_protects() {
    let (board, clock) = (Board::new(Clock::start(), false), Clock::start());
    let says = |protects: bool| {
        let config = serde_json::json!({ "standbyProtects": protects });
        ProberStatus::new(&board, clock, None, config, false).without_lead()
    };
    assert!(says(true).contains("protects those for which the leader does not act"));
    assert!(says(false).contains("writes nothing"));
}

#[tokio::test(start_paused = true)]
async fn many_healthy_shoots_are_folded_away_and_a_seed_that_is_not_known_is_said_to_be() {
    let clock = Clock::start();
    let board = Board::new(clock, false);
    for number in 0..100 {
        board.note_state(&format!("shoot--a--{number}"), Some("probed"));
    }
    let page = ProberStatus::new(&board, clock, Some("Machines"), Value::Null, true).body().into_string();
    assert!(page.contains("100 shoots</summary>"), "{page}");
    assert!(page.contains("The seed's Machines are not known") && page.contains("is refused"), "{page}");
}
