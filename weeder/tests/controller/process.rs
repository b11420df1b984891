//! What the weeder serves and tells, and how it meets a changed config file.

use std::collections::BTreeSet;
use std::time::Duration;

use api_server::{Fault, Network, Rule, When};
use serde_json::Value;
use testbed::gardener;

use crate::log::TOKEN;
use crate::world::{ELECTS, ETCD, SLICES, WeederWorld, gardeners, soon};

/// Waits for the Event of a deletion.
async fn deleted(world: &WeederWorld) -> Value {
    let event = world.server.store().wait_for(|store| {
        let mut events = store.list("events", None).into_iter();
        events.find(|event| event["reason"] == "PodDeleted")
    });
    soon("an Event", event).await
}

#[tokio::test(start_paused = true)]
async fn metrics_health_and_readiness_are_served() {
    let mut world = WeederWorld::weeded(&[ELECTS]).await;
    world.answers("/healthz", 200, "[+]weeding ok").await;
    world.answers("/readyz", 200, "[+]watches ok").await;
    let shown = world.metrics().await;
    let shown: BTreeSet<&str> = shown.types.keys().map(String::as_str).collect();
    let sections = include_str!("../../../docs/metrics.md").split("\n## ");
    let ours = sections
        .filter(|section| section.starts_with("Weeder") || section.starts_with("Both agents"));
    let name = |line: &'static str| line.strip_prefix("| `")?.split(['`', '{']).next();
    let documented: BTreeSet<&str> = ours.flat_map(str::lines).filter_map(name).collect();
    assert_eq!(shown, documented);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn it_is_ready_once_all_is_known_and_live_without_any_api_server() {
    for resource in ["pods", SLICES, ""] {
        let mut world = WeederWorld::new().await;
        match resource {
            "" => world.server.set_network(Network::Refused),
            _ => {
                world.fails(When::verb("list", resource), Fault::status(503));
            }
        }
        world.start(&[]);
        let restarts = "dwd_weeder_watch_restarts_total{resource=\"pods\"}";
        if resource != SLICES {
            world.counts(restarts, 2.0).await;
        }
        world.counts("dwd_seed_known", 0.0).await;
        world.answers("/healthz", 200, "").await;
        world.answers("/readyz", 500, "[-]watches").await;
        world.server.faults().clear();
        world.server.set_network(Network::Up);
        world.answers("/readyz", 200, "").await;
        world.counts("dwd_seed_known", 1.0).await;
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_what_it_would_delete_once_and_writes_nothing() {
    let mut world = WeederWorld::weeded(&[ELECTS, "--dry-run"]).await;
    world.recover("a", ETCD);
    // Each further pod is one more: nothing is said of those before.
    for (name, count) in [("p", 1.0), ("q", 2.0), ("r", 3.0)] {
        world.crash("a", name);
        let said = "dwd_weeder_deletions_total{result=\"dry_run\"}";
        world.counts(said, count).await;
    }
    let writes = world.server.requests().writes();
    assert_eq!(writes, 0, "no DELETE, no Lease, no Event");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_is_under_way_at_the_end_is_told() {
    let mut world = WeederWorld::weeded(&[]).await;
    let delay = Fault::Delay(Duration::from_millis(500));
    let slow = world.fails(When::verb("delete", "pods"), delay);
    world.crash("a", "p");
    world.recover("a", ETCD);
    soon("a DELETE", world.server.faults().met(slow, 1)).await;
    world.end().await;
    deleted(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_an_event_that_names_the_service_that_is_back() {
    let message = "crash-looping pod deleted because etcd-main-client is ready again";
    for (rules, kind, namespace, message) in [
        (vec![], "Lease", "garden", format!("Pod a/p: {message}")),
        (
            vec![Rule::new("create", "events")],
            "Pod",
            "a",
            message.to_owned(),
        ),
    ] {
        let mut world = WeederWorld::new().await;
        let mut weeder = gardener::seed_weeder();
        weeder.rules.get_or_insert_default().extend(rules);
        world.server.access().grant(TOKEN, weeder);
        world.start(&[ELECTS]);
        world.watched(1).await;
        world.crash("a", "p");
        world.recover("a", ETCD);
        let event = deleted(&world).await;
        let about = &event["involvedObject"];
        assert_eq!(
            [&about["kind"], &about["namespace"], &event["message"]],
            [kind, namespace, &*message]
        );
        world.end().await;
        let refused = world.server.requests();
        assert_eq!(refused.count(|record| record.status == Some(403)), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_config_file_that_says_the_same_in_other_words_changes_nothing() {
    let mut world = WeederWorld::weeded(&[]).await;
    world.configure(&format!("{}\n# a comment", gardeners()));
    world
        .counts("dwd_config_reloads_total{result=\"taken\"}", 1.0)
        .await;
    world.settle().await;
    for (reason, count) in [("start", 0.0), ("recovery", 1.0)] {
        let opened = format!("dwd_weeder_windows_opened_total{{reason=\"{reason}\"}}");
        world.counts(&opened, count).await;
    }
    assert_eq!(world.lists().len(), 2);
    world.end().await;
}
