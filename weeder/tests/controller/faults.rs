//! What an API server does wrong, and what must happen all the same.

use std::time::Duration;

use api_server::{Fault, Network, Record, Rule, User, When};
use common::leader_election::Role;
use serde_json::json;
use testbed::gardener;
use tokio::time::Instant;

use crate::log::TOKEN;
use crate::seed::{ETCD, SLICES, WeederSeed, pod, soon};

#[tokio::test]
async fn after_a_broken_watch_only_changed_endpoints_open_a_window() {
    let seed = WeederSeed::start().await;
    // Another deletion for the same owner shows another window.
    let weeder = seed
        .start_weeder_with("maxDeletionsPerOwner: 1", Role::Alone)
        .await;
    seed.watched(1).await;
    for namespace in ["same", "other", "back"] {
        seed.recover(namespace, ETCD);
        seed.apply(pod(namespace, "p", "apiserver"));
        seed.gone(namespace, "p").await;
    }
    seed.slice("back", ETCD, &[("endpoint", false)]);
    seed.settle().await;
    seed.server.set_network(Network::Refused);
    seed.slice("other", ETCD, &[("successor", true)]);
    seed.slice("back", ETCD, &[("endpoint", true)]);
    for namespace in ["same", "other", "back"] {
        seed.apply(pod(namespace, "q", "apiserver"));
    }
    // What happened meanwhile can be learned from a list only.
    seed.server.store().compact();
    seed.server.set_network(Network::Up);
    seed.gone("other", "q").await;
    seed.gone("back", "q").await;
    seed.settle().await;
    assert!(seed.has("same", "q"));
    weeder.end().await;
}

#[tokio::test]
async fn throttling_and_server_errors_are_overcome_while_the_window_is_open() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    let faults = seed.server.faults();
    let of = |name: &'static str| {
        When::matches(move |record| record.verb == "delete" && record.name == name)
    };
    faults.add(of("throttled").once(), Fault::throttle(1));
    faults.add(of("failing").times(2), Fault::status(500));
    faults.add(of("cut").once(), Fault::CloseBefore);
    faults.add(of("lost").once(), Fault::CloseAfter);
    for name in ["throttled", "failing", "cut", "lost"] {
        seed.apply(pod("a", name, "apiserver"));
    }
    seed.recover("a", ETCD);
    for name in ["throttled", "failing", "cut", "lost"] {
        seed.gone("a", name).await;
    }
    weeder.end().await;
}

#[tokio::test]
async fn deletes_that_hang_in_one_namespace_hold_up_no_other() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    let hanging = When::matches(|record| record.verb == "delete" && record.namespace == "a");
    let hanging = seed.server.faults().add(hanging, Fault::Stall);
    for number in 0..100 {
        seed.apply(pod("a", &number.to_string(), "apiserver"));
    }
    seed.apply(pod("z", "p", "apiserver"));
    seed.recover("a", ETCD);
    soon("a DELETE that hangs", seed.server.faults().met(hanging, 8)).await;
    let recovery = Instant::now();
    seed.recover("z", ETCD);
    seed.gone("z", "p").await;
    // The first ones are given up after 10 s.
    assert!(recovery.elapsed().as_secs() < 5, "{:?}", recovery.elapsed());
    weeder.end().await;
}

#[tokio::test]
async fn where_the_right_to_delete_is_missing_everywhere_one_review_finds_it_and_one_delete_is_tried()
 {
    let seed = WeederSeed::start().await;
    let rights = gardener::seed_weeder();
    let but_delete = ["pods", SLICES].map(|resource| Rule::new("get,list,watch", resource));
    let user = User::limited(&rights.name, but_delete.into());
    seed.server.access().grant(TOKEN, user);
    let weeder = seed.start_weeder().await;
    for namespace in 0..10 {
        let namespace = namespace.to_string();
        for number in 0..10 {
            seed.apply(pod(&namespace, &number.to_string(), "apiserver"));
        }
        seed.recover(&namespace, ETCD);
    }
    let review = "selfsubjectaccessreviews.authorization.k8s.io";
    let tried = seed.server.requests().wait_for(|records| {
        let is_answered = |record: &Record| record.resource == review && record.status.is_some();
        let reviewed = records.iter().position(is_answered)?;
        let deletes = || records.iter().filter(|record| record.verb == "delete");
        let last = deletes().next_back()?.at?;
        // Those that were in flight are sent before the answer, and the trial 10 s after it.
        let is_trial = last.duration_since(records[reviewed].at?) > Duration::from_secs(5);
        is_trial.then(|| deletes().count())
    });
    let sent = soon("a DELETE after the review", tried).await;
    assert!(sent <= 33, "32 in flight and one trial: {sent}");
    let reviews = |record: &Record| record.resource == review;
    assert_eq!(seed.server.requests().count(reviews), 1);
    seed.server.access().grant(TOKEN, rights);
    for namespace in 0..10 {
        seed.gone(&namespace.to_string(), "0").await;
    }
    weeder.end().await;
}

#[tokio::test]
async fn an_open_window_deletes_nothing_while_its_service_is_not_seen() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.recover("a", ETCD);
    seed.settle().await;
    let faults = seed.server.faults();
    let unlisted = faults.add(When::verb("list", SLICES), Fault::status(503));
    faults.add(When::verb("watch", SLICES).once(), Fault::status(410));
    seed.server.store().break_watches();
    weeder
        .counts(
            r#"dwd_weeder_watch_restarts_total{resource="endpointslices"}"#,
            2,
        )
        .await;
    seed.slice("a", ETCD, &[("endpoint", false)]);
    seed.apply(pod("a", "p", "apiserver"));
    // The watch of the pods works: this one shows that it has got so far.
    let mut unreadable = pod("a", "unreadable", "apiserver");
    unreadable["status"] = json!(8);
    seed.apply(unreadable);
    weeder
        .counts(r#"dwd_weeder_unreadable_objects_total{resource="pods"}"#, 1)
        .await;
    faults.remove(unlisted);
    weeder
        .counts(r#"dwd_weeder_windows_closed_total{reason="not_ready"}"#, 1)
        .await;
    seed.settle().await;
    assert!(seed.deletes("a").is_empty());
    weeder.end().await;
}
