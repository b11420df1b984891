//! Who may delete, and when.

use std::time::Duration;

use api_server::Record;
use common::events::Events;
use common::flags::LeaderElection;
use common::leader_election::LeaderElector;

use crate::seed::{ETCD, WeederSeed, pod};

#[tokio::test]
async fn without_leadership_nothing_is_deleted_and_with_it_at_once_what_a_recovery_before_it_calls_for()
 {
    let seed = WeederSeed::start().await;
    let settings = LeaderElection {
        enabled: true,
        namespace: "garden".to_owned(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };
    let (lease, identity) = ("dwd-weeder-leader-election", "me".to_owned());
    let client = seed.client().await;
    let (mut elector, role) = LeaderElector::new(client, settings, lease, identity, Events::none());
    let weeder = seed.start_weeder_with("", role).await;
    seed.watched(1).await;
    seed.apply(pod("a", "p", "apiserver"));
    seed.recover("a", ETCD);
    seed.seen(&weeder).await;
    elector.acquire().await;
    seed.gone("a", "p").await;
    let recovery = r#"dwd_weeder_windows_opened_total{reason="recovery"}"#;
    weeder.counts(recovery, 1).await;
    let requests = seed.server.requests().all();
    let first = |verb: &str| {
        requests
            .iter()
            .position(|record: &Record| record.verb == verb)
            .unwrap()
    };
    assert!(first("delete") > first("create"), "the Lease comes first");
    assert!(
        requests
            .iter()
            .filter(|record| record.verb == "list")
            .count()
            == 2,
        "what is known is not asked for again"
    );
    weeder.end().await;
}

#[tokio::test]
async fn nothing_is_deleted_after_the_end() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.recover("a", ETCD);
    seed.settle().await;
    weeder.end().await;
    let before = seed.server.requests().total();
    seed.apply(pod("a", "p", "apiserver"));
    let other = seed.start_weeder().await;
    seed.watched(2).await;
    seed.settle().await;
    assert!(
        seed.deletes("a").is_empty(),
        "only the other one asks, and its window is not open yet"
    );
    assert!(
        seed.server
            .requests()
            .all()
            .iter()
            .skip(before as usize)
            .all(|record| record.name != "p")
    );
    other.end().await;
}
