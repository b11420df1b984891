//! What the controller asks for and deletes, and what the rest of the process observes of it.

use std::borrow::Cow;
use std::time::Duration;

use api_server::{Fault, Network, Record, Rule, User, When};
use common::leader_election::Role;
use reqwest::Url;
use testbed::gardener;
use tokio::time::Instant;

use crate::log::TOKEN;
use crate::seed::{ETCD, SLICES, WeederSeed, gardeners, healthy, pod, soon, until};

#[tokio::test]
async fn a_start_costs_few_requests_and_none_that_is_forbidden() {
    const SHOOTS: usize = 300;
    let seed = WeederSeed::start().await;
    for shoot in 0..SHOOTS {
        let namespace = format!("shoot--garden--{shoot}");
        seed.slice(&namespace, ETCD, true);
        seed.slice(&namespace, "kube-apiserver", true);
        for role in ["main", "apiserver", "controller-manager", "scheduler"] {
            let mut pod = healthy(&namespace, role);
            pod["metadata"]["labels"]["role"] = role.into();
            seed.apply(pod);
        }
    }
    let weeder = seed.start_weeder().await;
    seed.settle().await;
    let requests = seed.server.requests().all();
    assert!(requests.iter().all(|record| record.status != Some(403)));
    // The pods of etcd are of no interest to any selector, so they are not even listed.
    let pages = |objects: usize| objects.div_ceil(500);
    let reads = requests
        .iter()
        .filter(|record| record.verb != "delete")
        .count();
    assert_eq!(
        reads,
        pages(2 * SHOOTS) + pages(3 * SHOOTS) + 2,
        "{requests:#?}"
    );
    for (resource, selector) in [
        (
            SLICES,
            "kubernetes.io/service-name in (etcd-main-client,kube-apiserver)",
        ),
        (
            "pods",
            "gardener.cloud/role in (controlplane),role notin (main)",
        ),
    ] {
        let list = seed
            .lists()
            .into_iter()
            .find(|record| record.resource == resource);
        let url = format!("http://seed/?{}", list.unwrap().query);
        let selects =
            |(key, value): (Cow<str>, Cow<str>)| key == "labelSelector" && value == selector;
        assert!(
            Url::parse(&url).unwrap().query_pairs().any(selects),
            "{url}"
        );
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
        seed.crash("a", &number.to_string());
    }
    seed.crash("z", "p");
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
    let namespaces = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|number| number.to_string());
    for namespace in &namespaces {
        for name in &namespaces {
            let mut pod = pod(namespace, name);
            pod["metadata"]["ownerReferences"][0]["uid"] = "of them all".into();
            seed.apply(pod);
        }
        seed.recover(namespace, ETCD);
    }
    let is_review =
        |record: &Record| record.resource == "selfsubjectaccessreviews.authorization.k8s.io";
    let tried = seed.server.requests().wait_for(|records| {
        let reviewed = records
            .iter()
            .find(|record| is_review(record) && record.status.is_some())?
            .at?;
        let deletes: Vec<_> = records
            .iter()
            .filter(|record| record.verb == "delete")
            .collect();
        // Those that were in flight are sent before the answer, and the trial 10 s after it.
        let is_trial = deletes.last()?.at?.duration_since(reviewed) > Duration::from_secs(5);
        is_trial.then_some(deletes.len())
    });
    let sent = soon("a DELETE after the review", tried).await;
    assert!(sent <= 33, "32 in flight and one trial: {sent}");
    assert_eq!(seed.server.requests().count(is_review), 1);
    seed.server.access().grant(TOKEN, rights);
    for namespace in &namespaces {
        seed.gone(namespace, "0").await;
    }
    weeder.end().await;
}

#[tokio::test]
async fn windows_and_deletions_are_counted() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    let refuse = |name: &'static str| {
        When::matches(move |record| record.verb == "delete" && record.name == name)
    };
    seed.server
        .faults()
        .add(refuse("p").once(), Fault::status(503));
    seed.server.faults().add(refuse("q"), Fault::status(403));
    for (namespace, name) in [("a", "p"), ("b", "q")] {
        seed.crash(namespace, name);
        seed.recover(namespace, ETCD);
    }
    // The answers, not the pods' being gone: the window must not close before them.
    for (metric, value) in [
        ("deletions_total{result=\"deleted\"}", 1),
        ("deletions_total{result=\"forbidden\"}", 1),
        ("windows_open", 2),
    ] {
        weeder.counts(&format!("dwd_weeder_{metric}"), value).await;
    }
    seed.slice("a", ETCD, false);
    seed.slice("b", ETCD, false);
    let is_open = |line: &String| line.starts_with("dwd_weeder_windows_open ");
    until("no open window", async || {
        !weeder.shown().iter().any(is_open)
    })
    .await;
    let mut shown = weeder.shown();
    shown.sort();
    let expected = [
        r#"dwd_weeder_deletions_total{result="deleted"} 1"#,
        r#"dwd_weeder_deletions_total{result="forbidden"} 1"#,
        r#"dwd_weeder_deletions_total{result="server"} 1"#,
        "dwd_weeder_namespaces 2",
        r#"dwd_weeder_windows_closed_total{reason="not_ready"} 2"#,
        r#"dwd_weeder_windows_opened_total{reason="recovery"} 2"#,
    ];
    assert_eq!(shown, expected);
    weeder.end().await;
}

#[tokio::test]
async fn it_is_ready_once_all_is_known_and_live_without_any_api_server() {
    let seed = WeederSeed::start().await;
    seed.server.set_network(Network::Refused);
    let weeder = seed.start_weeder_as(Role::Alone).await;
    let restarts = "dwd_weeder_watch_restarts_total{resource=\"pods\"}";
    weeder.counts(restarts, 1).await;
    let [live, ready] = [
        weeder.instruments.heartbeat.live(),
        weeder.instruments.heartbeat.ready(),
    ];
    assert_eq!(((live.ask)().is_ok(), (ready.ask)().is_ok()), (true, false));
    seed.server.set_network(Network::Up);
    until("readiness", async || (ready.ask)().is_ok()).await;
    weeder.end().await;
}

#[tokio::test]
async fn other_selectors_are_applied_without_first_windows_and_open_windows_go_on() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.recover("a", ETCD);
    seed.settle().await;
    seed.slice("c", "added", true);
    let mut other = pod("a", "p");
    other["metadata"]["labels"]["role"] = "other".into();
    seed.apply(other);
    seed.crash("a", "q");
    seed.gone("a", "q").await;
    seed.crash("c", "r");
    assert!(seed.has("a", "p"));
    // What means the same is no change.
    weeder.reconfigure(&format!("{}# a comment", gardeners()));
    weeder.reconfigure(
        "servicesAndDependantSelectors:
  added: {podSelectors: [{matchLabels: {role: apiserver}}]}
  etcd-main-client: {podSelectors: [{matchLabels: {role: other}}]}",
    );
    seed.gone("a", "p").await;
    assert!((weeder.instruments.heartbeat.ready().ask)().is_ok());
    assert_eq!(seed.lists().len(), 4);
    seed.watched(2).await;
    // The added Service was ready when it was first seen; only a recovery is one.
    seed.recover("d", "added");
    seed.crash("d", "s");
    seed.gone("d", "s").await;
    assert!(seed.has("c", "r"));
    let shown = weeder.shown().join("\n");
    assert!(!shown.contains("opened_total{reason=\"start\"}"), "{shown}");
    seed.recover("c", "added");
    seed.gone("c", "r").await;
    weeder.end().await;
}

#[tokio::test]
async fn without_leadership_nothing_is_deleted_and_with_it_at_once_what_a_recovery_before_it_calls_for()
 {
    let seed = WeederSeed::start().await;
    let (mut elector, role) = seed.elector(10).await;
    let weeder = seed.start_weeder_as(role).await;
    seed.watched(1).await;
    seed.crash("a", "p");
    seed.recover("a", ETCD);
    seed.seen(&weeder).await;
    elector.acquire().await;
    seed.gone("a", "p").await;
    weeder
        .counts(r#"dwd_weeder_windows_opened_total{reason="recovery"}"#, 1)
        .await;
    let requests = seed.server.requests().all();
    let first = |verb: &str| {
        requests
            .iter()
            .position(|record: &Record| record.verb == verb)
            .unwrap()
    };
    assert!(first("delete") > first("create"), "the Lease comes first");
    assert_eq!(
        seed.lists().len(),
        2,
        "what is known is not asked for again"
    );
    weeder.end().await;
}
