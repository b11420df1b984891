use std::sync::Arc;

use chrono::TimeDelta;

use super::*;
use crate::seed::ClusterState;
use crate::tests::{CONFIG, at, shared};

fn cluster(lifecycle: Option<prober_core::lifecycle::Lifecycle>) -> ClusterState {
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
    use prober_core::lifecycle::{Lifecycle, StopReason};
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
    let handle = shared.statuses.register("c", &config, at(0.0));
    tokio::time::advance(std::time::Duration::from_secs(40)).await;
    let limit = TimeDelta::seconds(39);
    let status = || ProberStatus::new(&shared.statuses, &shared.seed, &config, false);
    let shown = |status: &ProberStatus| -> Vec<_> {
        let shoots = status.shoots.iter();
        shoots
            .map(|shoot| format!("{} {}", shoot.namespace, shoot.state))
            .collect()
    };
    // Its probe is overdue. No namespace could be read, so that the others need attention, too.
    let all = ["c probed", "a hibernated", "b hibernated", "d unreadable"];
    assert_eq!(shown(&status()), all);
    assert_eq!(status().shoots_by_state["hibernated"], 2);
    assert_eq!(status().shoots[0].dependents.len(), 1);
    let late = shared.statuses.overdue(limit);
    assert_eq!(late, Some(("c".to_owned(), TimeDelta::seconds(40))));
    // What its task has published goes with it.
    drop(handle);
    assert_eq!(
        shown(&status()),
        ["a hibernated", "b hibernated", "c probed", "d unreadable"]
    );
    assert_eq!(shared.statuses.overdue(limit), None);
    shared.statuses.set_cluster("a", None);
    assert_eq!(
        shown(&status()),
        ["b hibernated", "c probed", "d unreadable"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_outages_are_kept_and_those_of_a_later_version_can_be_read() {
    let shared = shared(CONFIG);
    let config = Arc::clone(&shared.config.borrow());
    let handle = shared.statuses.register("loud", &config, at(0.0));
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
