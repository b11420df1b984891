//! A changed config is applied by a running weeder.

use common::leader_election::Role;

use crate::seed::{ETCD, SLICES, WeederSeed, pod, soon};

/// The metric of first windows, which only a start opens.
const STARTED: &str = r#"dwd_weeder_windows_opened_total{reason="start"}"#;

fn lists(seed: &WeederSeed) -> usize {
    seed.server.requests().count(|record| record.verb == "list")
}

#[tokio::test]
async fn another_limit_is_applied_in_an_open_window_and_nothing_is_listed_again() {
    let seed = WeederSeed::start().await;
    let weeder = seed
        .start_weeder_with("maxDeletionsPerOwner: 1", Role::Alone)
        .await;
    seed.reach_the_limit().await;
    // What is written differently and means the same is no change.
    weeder.reconfigure("maxDeletionsPerOwner: 1 # per window");
    seed.settle().await;
    assert!(seed.has("a", "q"));
    weeder.reconfigure("maxDeletionsPerOwner: 2");
    seed.gone("a", "q").await;
    assert_eq!(lists(&seed), 2);
    weeder.end().await;
}

#[tokio::test]
async fn other_selectors_are_applied_without_first_windows_and_open_windows_go_on() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.recover("a", ETCD);
    seed.settle().await;
    let other = "\
servicesAndDependantSelectors:
  added: {podSelectors: [{matchLabels: {role: apiserver}}]}
  etcd-main-client: {podSelectors: [{matchLabels: {role: other}}]}
";
    seed.slice("c", "added", &[("endpoint", true)]);
    seed.apply(pod("a", "p", "other"));
    seed.apply(pod("a", "q", "apiserver"));
    seed.gone("a", "q").await;
    seed.apply(pod("c", "r", "apiserver"));
    assert!(seed.has("a", "p"));
    weeder.reconfigure_to(other);
    seed.gone("a", "p").await;
    assert!((weeder.instruments.heartbeat.ready().ask)().is_ok());
    assert_eq!(lists(&seed), 4);
    let watches = |resource: &str| {
        seed.server
            .requests()
            .count(|record| record.verb == "watch" && record.resource == resource)
    };
    let watched = async {
        while watches("pods") < 2 || watches(SLICES) < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    soon("the watches", watched).await;
    // The added Service was ready when it was first seen; only a recovery is one.
    seed.recover("d", "added");
    seed.apply(pod("d", "s", "apiserver"));
    seed.gone("d", "s").await;
    assert!(seed.has("c", "r"));
    assert!(
        !weeder.shown().iter().any(|line| line.starts_with(STARTED)),
        "{:?}",
        weeder.shown()
    );
    seed.recover("c", "added");
    seed.gone("c", "r").await;
    weeder.end().await;
}
