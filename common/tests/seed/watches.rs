//! Watches that receive odd things, on tokio's paused clock.

use std::sync::Arc;
use std::time::Duration;

use api_server::{Fault, Options, When};
use common::metrics::UnreadableObjects;
use common::view::View;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::bed::{ViewBed, answer, direct, server, soon};

/// Longer than all that is done at once.
const MOMENT: Duration = Duration::from_millis(500);
const ALWAYS: u64 = u64::MAX;

async fn filled() -> ViewBed {
    filled_with(Options::default()).await
}

async fn filled_with(options: Options) -> ViewBed {
    let server = server(options).await;
    let client = direct(&server);
    ViewBed::filled(server, client).await
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_changes_nothing() {
    // Fault 8. What else happens on the server is soon more than it remembers; only bookmarks let a
    // quiet watch go on from there.
    let mut bed = filled_with(Options {
        history: 8,
        bookmark_interval: Duration::from_secs(1),
        ..Options::default()
    })
    .await;
    for round in 0..6 {
        // No more at once than is remembered, or the watch expires while it is open.
        for number in 0..5 {
            bed.create_object("v1", "Pod", &format!("p{round}-{number}"));
        }
        sleep(Duration::from_secs(3)).await;
    }
    assert!(bed.changes.try_recv().is_err(), "a bookmark is no change");
    let watches = bed.count("watch");
    bed.server.store().break_watches();
    bed.asked("watch", watches + 1).await;
    bed.delete("one");
    bed.changed("one").await;
    assert_eq!(bed.count("list"), 1, "it went on from a bookmark");
}

#[tokio::test(start_paused = true)]
async fn an_error_inside_of_a_watch_restarts_it() {
    // Fault 9: an ERROR event that says 410, and bytes that are no event.
    let mut bed = filled().await;
    for lists in [2, 3] {
        if lists == 2 {
            bed.create_object("v1", "Pod", "p");
            bed.server.store().compact();
        } else {
            bed.fails("watch", 1, Fault::Garbage);
        }
        bed.server.store().break_watches();
        bed.asked("list", lists).await;
        bed.changed("one").await;
        assert!(
            bed.view.is_known() && bed.known() == ["one"],
            "what was known stays known"
        );
        soon(bed.view.live()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_as_soon_as_it_is_open_is_broken_and_opened_again_after_growing_waits() {
    let mut bed = filled().await;
    let empty = bed.fails("watch", ALWAYS, answer(200, &[], ""));
    let begin = Instant::now();
    bed.server.store().break_watches();
    soon(bed.server.faults().met(empty, 4)).await;
    // 0.1, 0.2 and 0.4 s, and jitter.
    assert!(
        begin.elapsed() >= Duration::from_millis(700),
        "{:?}",
        begin.elapsed()
    );
    assert!(
        bed.view.live_since().is_none() && bed.view.is_known(),
        "broken, for less than a minute"
    );
    bed.server.faults().clear();
    soon(bed.view.live()).await;
    bed.delete("one");
    bed.changed("one").await;
    assert_eq!(bed.count("list"), 1, "it went on where it had ended");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_asks_for_time_gets_it_and_the_watch_goes_on_without_a_list() {
    // Without Retry-After it is 10 s. What Kubernetes' API priority and fairness answers is no
    // Status.
    for (code, wait, expected) in [(429, Some(7), 7), (429, None, 10), (429, Some(3600), 60)] {
        let mut bed = filled().await;
        let refusal = Fault::Status {
            code,
            retry_after: wait,
        };
        let refused = bed.fails("watch", 2, refusal);
        bed.server.store().break_watches();
        soon(bed.server.faults().met(refused, 1)).await;
        bed.delete("one");
        let begin = Instant::now();
        soon(bed.server.faults().met(refused, 2)).await;
        assert_eq!(begin.elapsed().as_secs(), expected, "{wait:?}");
        assert!(bed.view.live_since().is_none());
        bed.changed("one").await;
        soon(bed.view.live()).await;
        assert_eq!(
            (bed.count("list"), bed.view.listed_at()),
            (1, None),
            "known again, and not by a list"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_ordinary_end_of_a_watch_interrupts_nothing() {
    let bookmark_interval = Duration::from_secs(86_400);
    let mut bed = filled_with(Options {
        bookmark_interval,
        ..Options::default()
    })
    .await;
    let known = |bed: &ViewBed| (bed.view.live_since(), bed.view.listed_at());
    let before = known(&bed);
    assert!(before.0.is_some() && before.1.is_some());
    for watches in 2..5 {
        if watches < 4 {
            let name = watches.to_string();
            bed.create(&name);
            bed.changed(&name).await;
            bed.server.store().break_watches();
        } else {
            // As a kube-apiserver that has seen no event of a kind: it sends no bookmark either.
            sleep(Duration::from_secs(226)).await;
        }
        bed.asked("watch", watches).await;
    }
    bed.delete("one");
    bed.changed("one").await;
    assert_eq!((known(&bed), bed.count("list")), (before, 1));
}

#[tokio::test(start_paused = true)]
async fn a_list_has_as_long_as_an_api_server_takes_for_it() {
    let server = server(Options::default()).await;
    let listed = CancellationToken::new();
    let hold = Fault::Hold(listed.clone());
    let held = server
        .faults()
        .add(When::verb("list", "secrets").once(), hold);
    let bed = ViewBed::of_secrets(server.clone(), direct(&server));
    soon(server.faults().met(held, 1)).await;
    // kube-apiserver's --request-timeout
    sleep(Duration::from_secs(60)).await;
    listed.cancel();
    soon(bed.view.live()).await;
    assert_eq!(bed.count("list"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_ends_is_given_up_and_begun_again_after_growing_waits() {
    let server = server(Options::default()).await;
    let page = json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "7", "continue": "again"}, "items": []});
    let endless = answer(200, &[], page.to_string());
    let endless = server.faults().add(When::verb("list", "secrets"), endless);
    let bed = ViewBed::of_secrets(server.clone(), direct(&server));
    let begin = Instant::now();
    // Each time the first page, and the one that says that it follows itself.
    soon(server.faults().met(endless, 8)).await;
    // 0.1, 0.2 and 0.4 s, and jitter.
    assert!(
        begin.elapsed() >= Duration::from_millis(700),
        "{:?}",
        begin.elapsed()
    );
    assert!(!bed.view.is_known());
    server.faults().clear();
    soon(bed.view.live()).await;
}

/// What an API server answers whose groups are these.
fn groups(names: &[&str]) -> Fault {
    let group = |name| json!({"name": name, "versions": []});
    let groups: Vec<_> = names.iter().map(group).collect();
    let list = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups});
    answer(200, &[], list.to_string())
}

/// A view of Leases, which may be absent, on a server that answers 404 to their lists and this to
/// what groups it has.
async fn optional(discovery: Fault) -> ViewBed {
    let server = server(Options::default()).await;
    let client = direct(&server);
    let view: Arc<View<()>> = View::of_optional_kind("leases", &UnreadableObjects::default());
    let bed = ViewBed::of::<Lease>(server, client, view, "leases.coordination.k8s.io");
    is_unknown(&bed, discovery);
    bed
}

fn is_unknown(bed: &ViewBed, discovery: Fault) {
    bed.fails("list", ALWAYS, Fault::status(404));
    bed.server
        .faults()
        .add(When::request("GET", "/apis"), discovery);
}

#[tokio::test(start_paused = true)]
async fn of_a_kind_that_the_api_server_does_not_have_there_are_none_until_it_has() {
    let bed = optional(groups(&["apps"])).await;
    bed.create_object("coordination.k8s.io/v1", "Lease", "one");
    soon(bed.view.live()).await;
    for _ in 0..200 {
        sleep(MOMENT).await;
        assert!(bed.view.is_known() && bed.known().is_empty());
    }
    // Its definition is installed, and later the API server says that it is not.
    bed.server.faults().clear();
    bed.asked("watch", 1).await;
    assert_eq!(bed.known(), ["one"]);
    is_unknown(&bed, groups(&["apps"]));
    bed.fails("watch", 1, Fault::status(410));
    bed.server.store().break_watches();
    sleep(Duration::from_secs(50)).await;
    assert_eq!(bed.known(), ["one"], "what was known stays known");
}

#[tokio::test(start_paused = true)]
async fn that_a_kind_is_not_found_is_no_proof_that_it_is_absent() {
    for discovery in [
        groups(&["apps", "coordination.k8s.io"]),
        groups(&[]),
        Fault::status(404),
        Fault::status(503),
        Fault::Garbage,
        Fault::CloseBefore,
    ] {
        let bed = optional(discovery.clone()).await;
        sleep(Duration::from_secs(60)).await;
        assert!(bed.server.requests().count(|record| record.path == "/apis") > 2);
        assert!(!bed.view.is_known(), "{discovery:?}");
    }
}
