//! Answers that are none: each has its category, ends within the probe's budget, and leaves nothing
//! behind.

use std::sync::Arc;
use std::time::Duration;

use api_server::protobuf::wire::MEDIA_TYPE;
use api_server::{Fault, When};
use prober::shoot_client::Budget;
use tokio_util::sync::CancellationToken;

use super::shoot::{TestShoot, answer, fault_of, words};

/// What is asked for, the fault that it meets, and the category of that.
const PLAIN: &str = "
    nodes 429 throttled, nodes 503 server, nodes is-cut broken, nodes stalls timeout,
    leases 401 unauthorized, leases 403 forbidden, leases 404 not_found, leases 410 gone, leases 500 server,
    leases 418 status, leases is-cut broken, leases closes-after broken, leases is-garbage decode, leases stalls timeout";

/// Whatever else an API server, or something in its place, may answer, with the category of each.
fn bad_answers() -> Vec<(Fault, &'static str)> {
    let of_type = |media_type: &str| answer(200, &[("content-type", media_type)], b"<html>");
    let (bytes, pause) = (1 << 20, Duration::ZERO);
    vec![
        // A redirect is not followed, or there would be another category.
        (answer(302, &[("location", "/elsewhere")], b""), "status"),
        (of_type("text/html"), "decode"),
        (of_type(MEDIA_TYPE), "decode"),
        (
            Fault::Slow {
                bytes: 1,
                pause: Duration::from_millis(50),
            },
            "timeout",
        ),
        (Fault::Endless { bytes, pause }, "too_large"),
    ]
}

#[tokio::test]
async fn every_bad_answer_has_its_category_and_the_next_probe_works() {
    let plain = PLAIN.split(',').map(|row| {
        let words: Vec<_> = row.split_whitespace().collect();
        (words[0], fault_of(words[1]), words[2])
    });
    let others = bad_answers().into_iter();
    let others = others.map(|(fault, category)| ("leases", fault, category));
    let mut shoot = TestShoot::start().await;
    for (path, fault, category) in plain.chain(others) {
        shoot.timeout = Duration::from_millis(match category {
            // A body of 32 MiB takes its time in a debug build.
            "too_large" => 60_000,
            "timeout" => 400,
            _ => 2_000,
        });
        let id = shoot.meets(path, fault.clone());
        let error = shoot.nodes().await.expect_err("no complete answer");
        assert_eq!(words(&error), format!("{category} at {path}"), "{fault:?}");
        shoot.api.faults().remove(id);
        shoot.timeout = Duration::from_secs(2);
        shoot.leases().await.expect("a complete answer");
    }
}

#[tokio::test]
async fn nodes_that_are_throttled_beside_slow_leases_are_not_listed_again() {
    for throttled in [Fault::throttle(3), Fault::status(429)] {
        let mut shoot = TestShoot::start().await;
        let slow = CancellationToken::new();
        shoot.meets_once("leases", Fault::Hold(slow.clone()));
        let beside = shoot.meets_once("nodes", throttled);
        let secret = Arc::clone(&shoot.secret);
        let budget = Budget::starting_now(Duration::from_secs(20));
        let (api, client) = (&shoot.api, &mut shoot.client);
        let answered = async {
            api.faults().met(beside, 1).await;
            slow.cancel();
        };
        let (probed, ()) = tokio::join!(client.probe(&secret, true, budget), answered);
        let error = probed.map(drop).expect_err("no complete answer");
        assert_eq!(words(&error), "throttled at nodes");
    }
}

#[tokio::test]
async fn one_budget_holds_for_the_whole_probe() {
    // D-25: each answer is in time by itself, but not all of them together.
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_millis(400);
    let delay = Fault::Delay(Duration::from_millis(250));
    shoot.api.faults().add(When::any(), delay);
    let error = shoot.nodes().await.expect_err("no complete answer in time");
    assert_eq!(error.cause.category(), "timeout");
}
