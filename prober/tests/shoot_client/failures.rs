//! Answers that are none: each has its category, ends within the probe's budget, and leaves nothing
//! behind.

use std::time::Duration;

use api_server::protobuf::wire::{MEDIA_TYPE, message, text};
use api_server::{Fault, When};
use prober::shoot_client::error::Cause;

use super::shoot::{LEASES, NODES, TestShoot, VERSION, answer, list, words};

fn answer_with(code: u16, headers: &[(&str, &str)], body: &[u8]) -> Fault {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Fault::Answer {
        code,
        headers,
        body: body.to_vec().into(),
    }
}

/// Whatever an API server, or something in its place, may answer, with the category of each.
fn bad_answers() -> Vec<(Fault, &'static str)> {
    let json = ("content-type", "application/json");
    let protobuf = ("content-type", MEDIA_TYPE);
    let nothing = Duration::ZERO;
    let version = message(1, &[text(2, "1")]);
    vec![
        (Fault::status(401), "unauthorized"),
        (Fault::status(403), "forbidden"),
        (Fault::status(404), "not_found"),
        (Fault::status(410), "gone"),
        (Fault::status(429), "throttled"),
        (Fault::status(500), "server"),
        (Fault::status(503), "server"),
        (Fault::status(504), "server"),
        (Fault::status(400), "status"),
        (Fault::status(418), "status"),
        (answer_with(204, &[], b""), "status"),
        (answer_with(206, &[json], b"{}"), "status"),
        (answer_with(301, &[("location", VERSION)], b""), "status"),
        (
            answer_with(302, &[("location", "https://127.0.0.1:1/")], b""),
            "status",
        ),
        (answer_with(307, &[("location", VERSION)], b""), "status"),
        (
            answer("text/html", b"<html>sign in</html>".as_slice()),
            "decode",
        ),
        (answer_with(200, &[], b""), "decode"),
        (
            answer(
                "application/json",
                br#"{"kind":"LeaseList","metadata":{"resourceVersion":"1"},"items":[]}"#.as_slice(),
            ),
            "decode",
        ),
        (answer(MEDIA_TYPE, b"".as_slice()), "decode"),
        (answer(MEDIA_TYPE, b"k8s\0".as_slice()), "decode"),
        (list("PodList", &[version]), "decode"),
        (list("LeaseList", &[]), "decode"),
        (
            answer_with(
                200,
                &[protobuf, ("content-encoding", "gzip")],
                b"\x1f\x8b\x08\0\0\0\0\0\0\x03",
            ),
            "decode",
        ),
        (Fault::Garbage, "decode"),
        (
            answer_with(200, &[protobuf, ("set-cookie", &"c".repeat(70 << 10))], b""),
            "broken",
        ),
        (Fault::Truncate, "broken"),
        (Fault::CloseBefore, "broken"),
        (Fault::CloseAfter, "broken"),
        (Fault::Stall, "timeout"),
        (Fault::StallAfter, "timeout"),
        (
            Fault::Slow {
                bytes: 1,
                pause: Duration::from_millis(50),
            },
            "timeout",
        ),
        (
            Fault::Endless {
                bytes: 1,
                pause: Duration::from_millis(50),
            },
            "timeout",
        ),
        (
            Fault::Endless {
                bytes: 1 << 20,
                pause: nothing,
            },
            "too_large",
        ),
        (Fault::Oversized(33 << 20), "too_large"),
    ]
}

#[tokio::test]
async fn every_bad_answer_to_the_leases_has_its_category_and_the_next_probe_works() {
    let mut shoot = TestShoot::start().await;
    for (fault, category) in bad_answers() {
        // A body of 32 MiB takes its time in a debug build; what hangs need not.
        shoot.timeout = Duration::from_millis(if category == "too_large" { 60_000 } else { 400 });
        let id = shoot
            .api
            .faults()
            .add(When::request("GET", LEASES), fault.clone());
        assert_eq!(shoot.failed().await, ("leases", category), "{fault:?}");
        shoot.api.faults().remove(id);
        shoot.asked();
        shoot.timeout = Duration::from_secs(2);
        shoot.healthy().await;
        assert_eq!(
            shoot.asked(),
            [VERSION, LEASES],
            "after a failure the way must be shown again: {fault:?}"
        );
    }
}

#[tokio::test]
async fn bad_answers_to_the_nodes_are_failures_of_their_stage() {
    let mut shoot = TestShoot::start().await;
    for (fault, category) in [
        (Fault::status(403), "forbidden"),
        (Fault::status(500), "server"),
        (Fault::status(429), "throttled"),
        (Fault::Garbage, "decode"),
        (Fault::Truncate, "broken"),
        (Fault::Stall, "timeout"),
    ] {
        shoot.timeout = Duration::from_millis(400);
        let id = shoot
            .api
            .faults()
            .add(When::request("GET", NODES), fault.clone());
        let error = shoot.nodes().await.expect_err("no complete answer");
        assert_eq!(words(&error), ("nodes", category), "{fault:?}");
        shoot.api.faults().remove(id);
        shoot.timeout = Duration::from_secs(2);
        shoot.asked();
        shoot.healthy().await;
        assert_eq!(shoot.asked(), [VERSION, LEASES], "{fault:?}");
    }
}

#[tokio::test]
async fn a_gateway_that_adds_large_cookies_is_read() {
    let mut shoot = TestShoot::start().await;
    for (count, length) in [(1, 12 << 10), (12, 4 << 10), (500, 64)] {
        let Fault::Answer {
            code,
            mut headers,
            body,
        } = list("LeaseList", &[message(1, &[text(2, "1")])])
        else {
            panic!("an answer")
        };
        let cookie = |number| (format!("x-cookie-{number}"), "c".repeat(length));
        headers.extend((0..count).map(cookie));
        shoot.api.faults().add(
            When::request("GET", LEASES).once(),
            Fault::Answer {
                code,
                headers,
                body,
            },
        );
        shoot.leases().await.expect("a complete answer");
    }
}

#[tokio::test]
async fn without_a_version_nothing_is_listed() {
    for (fault, category) in [
        (Fault::status(401), "unauthorized"),
        (Fault::status(403), "forbidden"),
        (Fault::throttle(3), "throttled"),
        (Fault::status(503), "server"),
        (Fault::CloseBefore, "broken"),
    ] {
        let mut shoot = TestShoot::start().await;
        shoot
            .api
            .faults()
            .add(When::request("GET", VERSION), fault.clone());
        assert_eq!(shoot.failed().await, ("version", category), "{fault:?}");
        assert!(!shoot.asked().contains(&LEASES.to_owned()), "{fault:?}");
    }
}

#[tokio::test]
async fn an_api_server_that_is_throttling_says_for_how_long() {
    let cases = [
        (Fault::throttle(7), Some(Duration::from_secs(7))),
        (Fault::status(429), None),
        (
            answer_with(429, &[("retry-after", " 5 ")], b""),
            Some(Duration::from_secs(5)),
        ),
        (
            answer_with(
                429,
                &[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")],
                b"",
            ),
            None,
        ),
        (answer_with(429, &[("retry-after", "-3")], b""), None),
    ];
    let mut shoot = TestShoot::start().await;
    for (fault, expected) in cases {
        shoot.api.faults().clear();
        shoot
            .api
            .faults()
            .add(When::request("GET", LEASES), fault.clone());
        let error = shoot.leases().await.expect_err("throttled");
        let Cause::Throttled { retry_after } = error.cause else {
            panic!("{error}")
        };
        assert_eq!(retry_after, expected, "{fault:?}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut shoot = TestShoot::start().await;
    let elsewhere = TestShoot::start().await;
    let location = format!("{}{LEASES}", elsewhere.api.url());
    shoot.api.faults().add(
        When::request("GET", LEASES),
        answer_with(302, &[("location", &location)], b""),
    );
    assert_eq!(shoot.failed().await, ("leases", "status"));
    assert_eq!(
        (
            elsewhere.api.requests().total(),
            elsewhere.api.connections().accepted
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn one_budget_holds_for_the_whole_probe() {
    // D-25: each answer is in time by itself, but not all of them together.
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_millis(600);
    shoot
        .api
        .faults()
        .add(When::any(), Fault::Delay(Duration::from_millis(250)));
    let error = shoot.nodes().await.expect_err("no complete answer in time");
    assert_eq!(error.cause.category(), "timeout");
}

#[tokio::test]
async fn a_list_that_never_ends_is_given_up() {
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_secs(20);
    let again = message(1, &[text(2, "1"), text(3, "again")]);
    shoot
        .api
        .faults()
        .add(When::request("GET", LEASES), list("LeaseList", &[again]));
    assert_eq!(shoot.failed().await, ("leases", "too_large"));
    assert_eq!(shoot.asked().len(), 1 + 100);
}
