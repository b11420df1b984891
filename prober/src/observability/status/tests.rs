use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use prober_core::lifecycle::{Lifecycle, StopReason};

use super::*;
use crate::seed::ClusterState;
use crate::tests::{CONFIG, at, shared};

fn cluster(lifecycle: Option<Lifecycle>) -> ClusterState {
    ClusterState {
        uid: "uid".to_owned(),
        seed: Default::default(),
        shoot: lifecycle.is_none().then(|| Err("odd".to_owned())),
        lifecycle,
        settings: Default::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn what_needs_attention_comes_first_and_then_by_name() {
    let shared = shared(CONFIG);
    let config = Arc::clone(&shared.config.borrow());
    let stopped = Some(Lifecycle::Stop(StopReason::Hibernated));
    for (namespace, lifecycle) in [
        ("b", stopped),
        ("c", Some(Lifecycle::Probe)),
        ("d", None),
        ("a", stopped),
    ] {
        let cluster = cluster(lifecycle);
        shared.statuses.set_cluster(namespace, Some(&cluster));
    }
    let handle = shared.statuses.register("c", &config, at(0.0), None);
    tokio::time::advance(Duration::from_secs(40)).await;
    let status = || ProberStatus::new(&shared.statuses, &shared.seed, &config, false);
    let shown = || {
        let shoots = status().shoots.into_iter();
        let shoots = shoots.map(|shoot| format!("{} {}", shoot.namespace, shoot.state));
        shoots.collect::<Vec<_>>().join(", ")
    };
    // Its probe is overdue. No namespace could be read, so that the others need attention, too.
    let overdue = "c probed, a hibernated, b hibernated, d unreadable";
    assert_eq!(shown(), overdue);
    assert_eq!(status().shoots_by_state["hibernated"], 2);
    assert_eq!(status().shoots[0].dependents.len(), 1);
    drop(handle);
    let by_name = "a hibernated, b hibernated, c probed, d unreadable";
    assert_eq!(shown(), by_name);
    shared.statuses.set_cluster("a", None);
    assert_eq!(shown(), "b hibernated, c probed, d unreadable");
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_is_not_probed_is_never_overdue() {
    let shared = shared(CONFIG);
    let config = Arc::clone(&shared.config.borrow());
    let cluster = cluster(Some(Lifecycle::Probe));
    let limit = TimeDelta::seconds(30);
    let mut handles = Vec::new();
    for (namespace, first) in [("late", 0.0), ("later", -5.0), ("in time", 1.0)] {
        shared.statuses.set_cluster(namespace, Some(&cluster));
        let handle = shared
            .statuses
            .register(namespace, &config, at(first), None);
        handles.push(handle);
    }
    tokio::time::advance(Duration::from_secs(31)).await;
    let late = |namespace: &str, late| Some((namespace.to_owned(), TimeDelta::seconds(late)));
    let overdue = || shared.statuses.overdue(limit);
    assert_eq!(overdue(), late("later", 36));
    drop(handles.remove(1));
    assert_eq!(overdue(), late("late", 31));
    drop(handles.remove(0));
    assert_eq!(overdue(), None);
}

#[tokio::test(start_paused = true)]
async fn the_last_outages_are_kept_and_those_of_a_later_version_can_be_read() {
    let shared = shared(CONFIG);
    let config = Arc::clone(&shared.config.borrow());
    let handle = shared.statuses.register("loud", &config, at(0.0), None);
    for second in 0..30 {
        let record = serde_json::json!({
            "namespace": "loud", "began": "2026-01-02T00:00:00Z", "ended": format!("2026-01-02T00:01:{second:02}Z"),
            "end": "eclipsed", "heldDown": [], "writes": second, "colour": 1,
        });
        handle.keep(serde_json::from_value(record).expect("a record"));
    }
    let status = ProberStatus::new(&shared.statuses, &shared.seed, &config, false);
    let writes = status.outages.iter().map(|outage| outage.writes);
    assert!(writes.eq((10..30).rev()));
    assert_eq!(status.outages[0].seconds(), 89.0);
}
