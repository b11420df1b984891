//! What the weeder asks for and deletes.

use std::borrow::Cow;
use std::time::Duration;

use api_server::{Fault, Record, Rule, User, When};
use reqwest::Url;
use serde_json::json;
use testbed::gardener;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::log::TOKEN;
use crate::world::{ELECTS, ETCD, LEASES, LOCK, SLICES, WeederWorld, healthy, pod, soon};

#[tokio::test(start_paused = true)]
async fn a_start_costs_few_requests_and_none_that_is_forbidden() {
    const SHOOTS: usize = 300;
    let mut world = WeederWorld::new().await;
    for shoot in 0..SHOOTS {
        let namespace = format!("shoot--garden--{shoot}");
        world.slice(&namespace, ETCD, true);
        world.slice(&namespace, "kube-apiserver", true);
        for role in ["main", "apiserver", "controller-manager", "scheduler"] {
            let mut pod = healthy(&namespace, role);
            pod["metadata"]["labels"]["role"] = role.into();
            world.apply(pod);
        }
    }
    world.start(&[]);
    world.watched(1).await;
    world.settle().await;
    let requests = world.server.requests().all();
    assert!(requests.iter().all(|record| record.status != Some(403)));
    // The pods of etcd are of no interest to any selector, so they are not even listed.
    for (resource, count, selector) in [
        (
            SLICES,
            2,
            "kubernetes.io/service-name in (etcd-main-client,kube-apiserver)",
        ),
        (
            "pods",
            3,
            "gardener.cloud/role in (controlplane),role notin (main)",
        ),
    ] {
        let of = |record: &&Record| record.resource == resource && record.verb != "delete";
        let reads: Vec<_> = requests.iter().filter(of).collect();
        let pages = (count * SHOOTS).div_ceil(500);
        assert_eq!(reads.len(), pages + 1, "{reads:#?}");
        let url = Url::parse(&format!("http://seed/?{}", reads[0].query)).unwrap();
        let selects = ("labelSelector".into(), Cow::from(selector));
        assert!(url.query_pairs().any(|pair| pair == selects), "{url}");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn deletes_that_hang_in_one_namespace_hold_up_no_other() {
    let mut world = WeederWorld::weeded(&[]).await;
    let hanging = When::matches(|record| record.verb == "delete" && record.namespace == "a");
    let hanging = world.fails(hanging, Fault::Stall);
    for number in 0..100 {
        world.crash("a", &number.to_string());
    }
    world.crash("z", "p");
    world.recover("a", ETCD);
    soon("DELETEs that hang", world.server.faults().met(hanging, 8)).await;
    let recovery = Instant::now();
    world.recover("z", ETCD);
    world.gone("z", "p").await;
    // The first ones are given up after 10 s.
    assert!(recovery.elapsed().as_secs() < 5, "{:?}", recovery.elapsed());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn where_the_right_to_delete_is_missing_everywhere_one_review_finds_it_and_one_delete_is_tried()
 {
    let mut world = WeederWorld::new().await;
    let rights = gardener::seed_weeder();
    let but_delete = ["pods", SLICES].map(|resource| Rule::new("get,list,watch", resource));
    let user = User::limited(&rights.name, but_delete.into());
    world.server.access().grant(TOKEN, user);
    // All but the first are answered after the review.
    let held = CancellationToken::new();
    let hold = Fault::Hold(held.clone());
    world.fails(When::verb("delete", "pods").after(1), hold);
    world.start(&[]);
    world.watched(1).await;
    let namespaces = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|number| number.to_string());
    for namespace in &namespaces {
        for name in &namespaces {
            let mut pod = pod(namespace, name);
            pod["metadata"]["ownerReferences"][0]["uid"] = "of them all".into();
            world.apply(pod);
        }
        world.recover(namespace, ETCD);
    }
    let is_review = |record: &Record| record.resource.starts_with("selfsubjectaccessreviews.");
    let reviewed = world.server.requests().wait_for(|records| {
        let mut reviews = records.iter().filter(|record| is_review(record));
        reviews.any(|record| record.status.is_some()).then_some(())
    });
    soon("a review", reviewed).await;
    held.cancel();
    // The next one is tried 10 s after the review.
    sleep(Duration::from_secs(9)).await;
    let is_delete = |record: &Record| record.verb == "delete";
    let (requests, in_flight) = (world.server.requests(), 32);
    let sent = requests.count(is_delete);
    assert!(sent <= 1 + in_flight, "{sent}");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(requests.count(is_delete), sent + 1);
    assert_eq!(requests.count(is_review), 1);
    world.server.access().grant(TOKEN, rights);
    for namespace in &namespaces {
        world.gone(namespace, "0").await;
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn windows_and_deletions_are_counted() {
    let mut world = WeederWorld::weeded(&[]).await;
    for (namespace, name, fault) in [("a", "p", 503), ("b", "q", 403)] {
        let deletes = When::matches(move |record| record.verb == "delete" && record.name == name);
        let times = if fault == 503 { 1 } else { u64::MAX };
        world.fails(deletes.times(times), Fault::status(fault));
        world.crash(namespace, name);
        world.recover(namespace, ETCD);
    }
    // The answers, not the pods' being gone: the window must not close before them.
    for (series, value) in [
        ("deletions_total{result=\"deleted\"}", 1.0),
        ("deletions_total{result=\"forbidden\"}", 1.0),
        ("deletions_total{result=\"server\"}", 1.0),
        ("namespaces", 2.0),
        ("windows_open", 2.0),
        ("windows_opened_total{reason=\"recovery\"}", 2.0),
    ] {
        world.counts(&format!("dwd_weeder_{series}"), value).await;
    }
    world.slice("a", ETCD, false);
    world.slice("b", ETCD, false);
    let closed = "dwd_weeder_windows_closed_total{reason=\"not_ready\"}";
    world.counts(closed, 2.0).await;
    world.counts("dwd_weeder_windows_open", 0.0).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn other_selectors_are_applied_without_first_windows_and_open_windows_go_on() {
    let mut world = WeederWorld::weeded(&[]).await;
    world.recover("a", ETCD);
    world.settle().await;
    world.slice("c", "added", true);
    let mut other = pod("a", "p");
    other["metadata"]["labels"]["role"] = "other".into();
    world.apply(other);
    world.crash("a", "q");
    world.gone("a", "q").await;
    world.crash("c", "r");
    assert!(world.has("a", "p"));
    world.configure(
        "servicesAndDependantSelectors:
  added: {podSelectors: [{matchLabels: {role: apiserver}}]}
  etcd-main-client: {podSelectors: [{matchLabels: {role: other}}]}",
    );
    world.gone("a", "p").await;
    world.answers("/readyz", 200, "").await;
    assert_eq!(world.lists().len(), 4);
    world.watched(2).await;
    // The added Service was ready when it was first seen; only a recovery is one.
    world.recover("d", "added");
    world.crash("d", "s");
    world.gone("d", "s").await;
    assert!(world.has("c", "r"));
    let started = "dwd_weeder_windows_opened_total{reason=\"start\"}";
    world.counts(started, 0.0).await;
    world.recover("c", "added");
    world.gone("c", "r").await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_leadership_nothing_is_deleted_and_with_it_at_once_what_a_recovery_before_it_calls_for()
 {
    let mut world = WeederWorld::new().await;
    let lease = |holder: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": "garden", "name": LOCK},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 600, "renewTime": "2026-01-01T00:00:00.000000Z"},
        })
    };
    world.apply(lease("other"));
    world.start(&[ELECTS]);
    world.watched(1).await;
    world.crash("a", "p");
    world.recover("a", ETCD);
    world.counts("dwd_weeder_namespaces", 1.0).await;
    sleep(Duration::from_secs(9)).await;
    assert!(world.has("a", "p"));
    world.apply(lease(""));
    world.gone("a", "p").await;
    let opened = "dwd_weeder_windows_opened_total{reason=\"recovery\"}";
    world.counts(opened, 1.0).await;
    let requests = world.server.requests().all();
    let first = |verb: &str, resource: &str| {
        let is_it = |record: &Record| record.verb == verb && record.resource == resource;
        requests.iter().position(is_it).unwrap()
    };
    let (deleted, led) = (first("delete", "pods"), first("update", LEASES));
    assert!(deleted > led, "the Lease comes first");
    let known = "what is known is not asked for again";
    assert_eq!(world.lists().len(), 2, "{known}");
    world.end().await;
}
