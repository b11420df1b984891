//! What a probe costs while all is well, and what a kept connection that may be dead costs.

use std::sync::Arc;
use std::time::Duration;

use api_server::Fault;
use chrono::TimeDelta;
use prober::shoot_client::Budget;
use tokio_util::sync::CancellationToken;

use super::shoot::TestShoot;

/// What a kept connection has not answered by then is asked on another one, too (D-58).
const HEDGE: TimeDelta = TimeDelta::milliseconds(500);

/// A shoot with a connection that is kept from a probe before.
async fn kept() -> TestShoot {
    let mut shoot = TestShoot::start().await;
    shoot.tell("probe: 3 by leases/1").await;
    shoot
}

#[tokio::test]
async fn a_healthy_probe_is_one_request_on_a_kept_connection() {
    let mut shoot = kept().await;
    shoot
        .tell("probe: 3 by leases/1; probe: 3 by leases/1; connections: 1")
        .await;
}

#[tokio::test]
async fn after_ten_minutes_the_connection_is_replaced() {
    let mut shoot = kept().await;
    let story = "wait 599; probe: 3 by leases/1; wait 1; probe: 3 by leases/2; wait 1; probe: 3 by leases/2";
    shoot.tell(story).await;
}

#[tokio::test]
async fn what_a_kept_connection_does_not_answer_is_asked_once_more_on_a_new_one_which_is_kept() {
    for story in [
        "leases stalls once; probe: 3 by leases/1 leases/2; probe: 3 by leases/2; connections: 2",
        "leases stalls-after once; probe: 3 by leases/1 leases/2; probe: 3 by leases/2; connections: 2",
        "leases closes-before once; probe: 3 by leases/1 leases/2; probe: 3 by leases/2; connections: 2",
        "timeout 400; leases stalls; probe: timeout at leases by leases/1 leases/2",
        // A page of nodes may take its time on a connection that has just answered.
        "timeout 20000; another client; probe: 3 by leases/2; nodes takes-1s once; probe nodes: 3 by leases/2 nodes/2",
    ] {
        kept().await.tell(story).await;
    }
}

#[tokio::test]
async fn the_times_are_those_of_the_request_that_was_answered() {
    let mut shoot = kept().await;
    let late = TimeDelta::milliseconds(200);
    for (fault, until_sent, until_received) in [
        (
            Fault::Delay(Duration::from_millis(200)),
            TimeDelta::zero(),
            late,
        ),
        (Fault::Stall, HEDGE, HEDGE),
    ] {
        shoot.meets_once("leases", fault);
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
        shoot.meets_once("leases", Fault::Hold(late.clone()));
        let hedge = shoot.meets_once("leases", second.clone());
        let (api, client, clock) = (&shoot.api, &mut shoot.client, shoot.clock);
        let asked_again = async {
            api.faults().met(hedge, 1).await;
            late.cancel();
            clock.now()
        };
        let budget = Budget::starting_now(Duration::from_secs(20));
        let secret = Arc::clone(&shoot.secret);
        let (seen, asked_again) = tokio::join!(client.leases(&secret, budget), asked_again);
        let waited = asked_again - seen.expect("a complete answer").times.sent;
        // The wait begins a moment before the request is sent.
        let moment = TimeDelta::milliseconds(20);
        assert!(waited >= HEDGE - moment, "{second:?}: {waited:?}");
        assert_eq!(shoot.asked(), "leases/1 leases/2", "{second:?}");
        shoot.tell("probe: 3 by leases/1").await;
    }
}
