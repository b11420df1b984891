//! What a probe costs while all is well, and what a kept connection that may be dead costs.

use std::time::Duration;

use api_server::{ConnectionCounts, Fault};
use chrono::TimeDelta;
use prober::shoot_client::Budget;
use tokio_util::sync::CancellationToken;

use super::shoot::{LEASES, NODES, TestShoot, VERSION};

/// What a kept connection has not answered by then is asked on another one, too (D-58).
const HEDGE: TimeDelta = TimeDelta::milliseconds(500);

/// A shoot with a connection that is kept from a probe before.
async fn kept() -> TestShoot {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    assert_eq!(
        shoot.asked(),
        [VERSION, LEASES],
        "the first probe shows that the API server can be reached"
    );
    shoot
}

/// Over which connection each request for the leases came.
fn connections(shoot: &TestShoot) -> Vec<u64> {
    let leases = shoot.requests(LEASES).into_iter();
    leases.map(|record| record.connection).collect()
}

#[tokio::test]
async fn a_healthy_probe_is_one_request_on_a_kept_connection() {
    let mut shoot = kept().await;
    for _ in 0..10 {
        shoot.healthy().await;
        let all = shoot.api.requests().all();
        let is_old = |query: &str| query.contains("resourceVersion");
        assert!(!all.iter().any(|record| is_old(&record.query)), "{all:?}");
        assert_eq!(shoot.asked(), [LEASES]);
    }
    let one = ConnectionCounts {
        accepted: 1,
        handshakes: 1,
        open: 1,
    };
    assert_eq!(shoot.api.connections(), one);
}

#[tokio::test]
async fn after_ten_minutes_the_connection_is_replaced_and_the_version_asked() {
    let mut shoot = kept().await;
    for (seconds, paths, accepted) in [
        (599, &[LEASES][..], 1),
        (1, &[VERSION, LEASES], 2),
        (1, &[LEASES], 2),
    ] {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        // It runs on by itself afterwards, as the connections need.
        tokio::time::resume();
        shoot.healthy().await;
        assert_eq!(shoot.asked(), paths);
        assert_eq!(shoot.api.connections().accepted, accepted);
    }
}

#[tokio::test]
async fn what_a_kept_connection_does_not_answer_is_asked_once_more_on_a_new_one_which_is_kept() {
    for fault in [
        Fault::Stall,
        Fault::StallAfter,
        Fault::CloseBefore,
        Fault::Truncate,
    ] {
        let mut shoot = kept().await;
        shoot.meets_once(LEASES, fault.clone());
        shoot.healthy().await;
        shoot.healthy().await;
        let [first, second, next] = *connections(&shoot) else {
            panic!("{fault:?}: {:?}", shoot.asked())
        };
        assert!(
            first != second && second == next,
            "{fault:?}: {first}, {second}, {next}"
        );
        assert_eq!(shoot.api.connections().accepted, 2, "{fault:?}");
    }
}

#[tokio::test]
async fn the_times_are_those_of_the_request_that_was_answered() {
    let mut shoot = kept().await;
    for (fault, until_sent, until_received) in [
        (
            Fault::Delay(Duration::from_millis(200)),
            TimeDelta::zero(),
            TimeDelta::milliseconds(200),
        ),
        (Fault::Stall, HEDGE, HEDGE),
    ] {
        shoot.meets_once(LEASES, fault);
        let begun = shoot.clock.now();
        let times = shoot.leases().await.expect("a complete answer").times;
        assert!(times.sent - begun >= until_sent, "{:?}", times.sent - begun);
        assert!(times.received - begun >= until_received);
        assert!(times.received - times.sent >= until_received - until_sent);
    }
}

#[tokio::test]
async fn a_kept_connection_that_answers_while_a_new_one_is_silent_or_fails_is_used_and_kept() {
    for second in [Fault::Stall, Fault::CloseBefore, Fault::status(503)] {
        let mut shoot = kept().await;
        let late = CancellationToken::new();
        shoot.meets_once(LEASES, Fault::Hold(late.clone()));
        let hedge = shoot.meets_once(LEASES, second.clone());
        let (api, client, clock) = (&shoot.api, &mut shoot.client, shoot.clock);
        let asked_again = async {
            api.faults().met(hedge, 1).await;
            late.cancel();
            clock.now()
        };
        let budget = Budget::starting_now(Duration::from_secs(20));
        let (seen, asked_again) = tokio::join!(client.leases(budget), asked_again);
        let waited = asked_again - seen.expect("a complete answer").times.sent;
        // The wait begins a moment before the request is sent.
        let moment = TimeDelta::milliseconds(20);
        assert!(waited >= HEDGE - moment, "{second:?}: {waited:?}");
        shoot.healthy().await;
        let [first, other, next] = *connections(&shoot) else {
            panic!("{second:?}: {:?}", shoot.asked())
        };
        assert!(
            first != other && first == next,
            "{second:?}: {first}, {other}, {next}"
        );
    }
}

#[tokio::test]
async fn a_page_of_nodes_may_take_its_time_on_a_connection_that_has_just_answered() {
    let mut shoot = kept().await;
    shoot.timeout = Duration::from_secs(20);
    shoot.meets_once(NODES, Fault::Delay(Duration::from_secs(1)));
    shoot.nodes().await.expect("a complete answer");
    assert_eq!(shoot.asked(), [LEASES, NODES]);
}

#[tokio::test]
async fn a_request_is_repeated_no_more_than_once() {
    let mut shoot = kept().await;
    shoot.timeout = Duration::from_millis(400);
    shoot.meets(LEASES, Fault::Stall);
    assert_eq!(shoot.failed().await, ("leases", "timeout"));
    assert_eq!(shoot.asked(), [LEASES, LEASES]);
}
