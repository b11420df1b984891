use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use prober_core::lifecycle::{Lifecycle, StopReason};

use super::*;
use crate::observability::report::Reporter;
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
    let reporter = Reporter::new(&shared.statuses, "c", &config, at(0.0), None);
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
    assert_eq!(status().shoots[0].dependents.len(), 1);
    drop(reporter);
    let by_name = "a hibernated, b hibernated, c probed, d unreadable";
    assert_eq!(shown(), by_name);
    shared.statuses.set_cluster("a", None);
    assert_eq!(shown(), "b hibernated, c probed, d unreadable");
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_is_not_probed_is_never_overdue() {
    let shared = shared(CONFIG);
    let (statuses, config) = (&shared.statuses, Arc::clone(&shared.config.borrow()));
    let mut reporters = [("later", -5.0), ("late", 0.0), ("in time", 1.0)]
        .map(|(name, first)| {
            statuses.set_cluster(name, Some(&cluster(Some(Lifecycle::Probe))));
            Reporter::new(statuses, name, &config, at(first), None)
        })
        .into_iter();
    tokio::time::advance(Duration::from_secs(31)).await;
    for expected in [Some(("later", 36)), Some(("late", 31)), None] {
        let late = expected.map(|(name, late)| (name.to_owned(), TimeDelta::seconds(late)));
        assert_eq!(statuses.overdue(TimeDelta::seconds(30)), late);
        drop(reporters.next());
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_outages_are_kept() {
    let shared = shared(CONFIG);
    for writes in 0..30 {
        let outage = Outage {
            writes,
            ..Outage::default()
        };
        shared.statuses.keep(outage);
    }
    let config = Arc::clone(&shared.config.borrow());
    let status = ProberStatus::new(&shared.statuses, &shared.seed, &config, false);
    let writes = status.outages.iter().map(|outage| outage.writes);
    assert!(writes.eq((10..30).rev()));
}
