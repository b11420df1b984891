//! What a probe costs while all is well.

use std::time::Duration;

use api_server::{ConnectionCounts, Fault, Options, When};
use chrono::TimeDelta;
use prober::shoot_client::Budget;
use tokio_util::sync::CancellationToken;

use super::shoot::{LEASES, NODES, TestShoot, VERSION, words};

/// What a kept connection has not answered by then is asked on another one, too (D-58).
const HEDGE: TimeDelta = TimeDelta::milliseconds(500);

#[tokio::test]
async fn a_healthy_probe_is_one_request_on_a_kept_connection() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    assert_eq!(
        shoot.asked(),
        [VERSION, LEASES],
        "the first probe shows that the API server can be reached"
    );
    for _ in 0..10 {
        shoot.healthy().await;
        assert_eq!(shoot.asked(), [LEASES]);
    }
    assert_eq!(
        shoot.api.connections(),
        ConnectionCounts {
            accepted: 1,
            handshakes: 1,
            open: 1
        }
    );
}

#[tokio::test]
async fn the_most_recent_state_is_asked_for() {
    let mut shoot = TestShoot::start().await;
    shoot.api.store().freeze_cache();
    shoot.add_nodes(3..4);
    let seen = shoot.nodes().await.expect("a complete answer");
    assert_eq!(
        seen.items.len(),
        4,
        "the state of now, not of a lagging cache"
    );
    let all = shoot.api.requests().all();
    assert!(
        all.iter()
            .all(|record| !record.query.contains("resourceVersion")),
        "{all:?}"
    );
    let lists: Vec<_> = all.iter().filter(|record| record.verb == "list").collect();
    assert_eq!(
        lists
            .iter()
            .map(|record| record.path.as_str())
            .collect::<Vec<_>>(),
        [LEASES, NODES]
    );
}

#[tokio::test]
async fn a_look_says_when_it_was_sent_and_when_it_was_answered() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.api.faults().add(
        When::request("GET", LEASES),
        Fault::Delay(Duration::from_millis(200)),
    );
    let seen = shoot.leases().await.expect("a complete answer");
    assert!(seen.times.received - seen.times.sent >= chrono::TimeDelta::milliseconds(200));
}

#[tokio::test]
async fn of_a_server_that_speaks_json_only_the_error_says_so() {
    let mut shoot = TestShoot::with(Options {
        json_only: true,
        ..Options::default()
    })
    .await;
    let error = shoot.leases().await.expect_err("no protobuf");
    assert_eq!(words(&error), ("leases", "decode"));
    assert_eq!(
        error.cause.to_string(),
        "the answer is \"application/json\", not application/vnd.kubernetes.protobuf"
    );
}

#[tokio::test]
async fn after_ten_minutes_the_connection_is_replaced_and_the_version_asked() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.healthy().await;
    shoot.asked();
    advance(Duration::from_secs(599)).await;
    shoot.healthy().await;
    assert_eq!(
        (shoot.asked().len(), shoot.api.connections().accepted),
        (1, 1)
    );
    advance(Duration::from_secs(1)).await;
    shoot.healthy().await;
    assert_eq!(shoot.asked(), [VERSION, LEASES]);
    assert_eq!(shoot.api.connections().accepted, 2);
    shoot.healthy().await;
    assert_eq!(shoot.asked(), [LEASES]);
}

/// Puts the clock forward; it runs on by itself afterwards, as the connections need.
async fn advance(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_connection_that_the_server_closed_in_between_costs_no_probe_and_no_version() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.asked();
    shoot.api.cut_connections();
    shoot.healthy().await;
    assert_eq!(shoot.asked(), [LEASES]);
    assert_eq!(shoot.api.connections().accepted, 2);
}

/// Over which connection each request for the leases came.
fn connections(shoot: &TestShoot) -> Vec<u64> {
    let leases = shoot
        .api
        .requests()
        .all()
        .into_iter()
        .filter(|record| record.path == LEASES);
    leases.map(|record| record.connection).collect()
}

#[tokio::test]
async fn what_a_kept_connection_does_not_answer_is_asked_once_more_on_a_new_one_which_is_kept() {
    for fault in [
        Fault::Stall,
        Fault::StallAfter,
        Fault::CloseBefore,
        Fault::Truncate,
    ] {
        let mut shoot = TestShoot::start().await;
        shoot.healthy().await;
        shoot.asked();
        shoot
            .api
            .faults()
            .add(When::request("GET", LEASES).once(), fault.clone());
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
async fn the_time_of_sending_is_that_of_the_request_that_was_answered() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot
        .api
        .faults()
        .add(When::request("GET", LEASES).once(), Fault::Stall);
    let begun = shoot.clock.now();
    let seen = shoot.leases().await.expect("a complete answer");
    assert!(
        seen.times.sent - begun >= HEDGE,
        "{:?}",
        seen.times.sent - begun
    );
}

#[tokio::test]
async fn a_kept_connection_that_answers_while_a_new_one_is_silent_or_fails_is_used_and_kept() {
    for second in [Fault::Stall, Fault::CloseBefore, Fault::status(503)] {
        let mut shoot = TestShoot::start().await;
        shoot.healthy().await;
        shoot.asked();
        let late = CancellationToken::new();
        shoot.api.faults().add(
            When::request("GET", LEASES).once(),
            Fault::Hold(late.clone()),
        );
        let hedge = shoot
            .api
            .faults()
            .add(When::request("GET", LEASES).once(), second.clone());
        let (api, client, clock) = (&shoot.api, &mut shoot.client, shoot.clock);
        let asked_again = async {
            api.faults().met(hedge, 1).await;
            late.cancel();
            clock.now()
        };
        let budget = Budget::starting_now(Duration::from_secs(20));
        let (seen, asked_again) = tokio::join!(client.leases(budget), asked_again);
        let seen = seen.expect("a complete answer");
        assert!(
            asked_again - seen.times.sent >= HEDGE,
            "{second:?}: {:?}",
            asked_again - seen.times.sent
        );
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
async fn an_api_server_that_answers_slowly_has_its_answer_used() {
    let slow = async |time: Duration| {
        let mut shoot = TestShoot::start().await;
        shoot.timeout = Duration::from_secs(20);
        shoot.healthy().await;
        shoot.asked();
        shoot
            .api
            .faults()
            .add(When::request("GET", LEASES).once(), Fault::Delay(time));
        shoot
            .api
            .faults()
            .add(When::request("GET", LEASES), Fault::Stall);
        shoot.healthy().await;
        assert_eq!(shoot.asked(), [LEASES, LEASES]);
    };
    tokio::join!(
        slow(Duration::from_millis(1900)),
        slow(Duration::from_secs(3))
    );
}

#[tokio::test]
async fn a_page_of_nodes_may_take_its_time_on_a_connection_that_has_just_answered() {
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_secs(20);
    shoot.healthy().await;
    shoot.asked();
    shoot.api.faults().add(
        When::request("GET", NODES).once(),
        Fault::Delay(Duration::from_secs(1)),
    );
    shoot.nodes().await.expect("a complete answer");
    assert_eq!(shoot.asked(), [LEASES, NODES]);
}

#[tokio::test]
async fn a_request_is_repeated_no_more_than_once() {
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_millis(400);
    shoot.healthy().await;
    shoot.asked();
    shoot
        .api
        .faults()
        .add(When::request("GET", LEASES), Fault::Stall);
    assert_eq!(shoot.failed().await, ("leases", "timeout"));
    assert_eq!(shoot.asked(), [LEASES, LEASES]);
}
