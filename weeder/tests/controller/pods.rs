//! Which pods are deleted, and how.

use std::time::Duration;

use api_server::{Fault, When};

use crate::seed::{ETCD, WeederSeed, healthy, owned_alone, pod, soon};

/// How long a DELETE is held up for something to happen meanwhile: well below the weeder's patience
/// of 10 s.
const MEANWHILE: Duration = Duration::from_secs(5);

/// Lets a DELETE of a crash-looping pod be under way, whose answer takes a while.
async fn a_slow_delete(seed: &WeederSeed) {
    seed.server
        .faults()
        .add(When::verb("delete", "pods").once(), Fault::Delay(MEANWHILE));
    seed.apply(pod("a", "p", "apiserver"));
    seed.recover("a", ETCD);
    let sent = seed.server.requests().wait_for(|records| {
        records
            .iter()
            .any(|record| record.verb == "delete")
            .then_some(())
    });
    soon("a DELETE", sent).await;
}

#[tokio::test]
async fn only_crash_looping_pods_are_deleted_also_when_they_begin_to_crash_later() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.apply(pod("a", "crashing", "apiserver"));
    seed.apply(healthy("a", "well", "apiserver"));
    seed.recover("a", ETCD);
    seed.gone("a", "crashing").await;
    seed.settle().await;
    assert!(seed.has("a", "well"));
    seed.apply(owned_alone(pod("a", "well", "apiserver")));
    seed.gone("a", "well").await;
    weeder.end().await;
}

#[tokio::test]
async fn a_new_pod_of_the_same_name_survives_a_delete_that_was_meant_for_the_old_one() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    a_slow_delete(&seed).await;
    seed.server.store().delete("pods", "a", "p").unwrap();
    seed.apply(healthy("a", "p", "apiserver"));
    seed.answered("p", 409).await;
    seed.settle().await;
    assert!(seed.has("a", "p"));
    assert_eq!(seed.deletes("a").len(), 1, "it is done with");
    weeder.end().await;
}

#[tokio::test]
async fn a_delete_whose_answer_was_lost_counts() {
    let seed = WeederSeed::start().await;
    let weeder = seed
        .start_weeder_with(
            "maxDeletionsPerOwner: 1",
            common::leader_election::Role::Alone,
        )
        .await;
    seed.watched(1).await;
    seed.server
        .faults()
        .add(When::verb("delete", "pods").once(), Fault::CloseAfter);
    seed.recover("a", ETCD);
    seed.apply(pod("a", "p", "apiserver"));
    seed.gone("a", "p").await;
    seed.apply(pod("a", "q", "apiserver"));
    weeder
        .counts(r#"dwd_weeder_deletions_total{result="no_answer"}"#, 1)
        .await;
    seed.settle().await;
    assert!(seed.has("a", "q"));
    weeder.end().await;
}

#[tokio::test]
async fn a_pod_that_somebody_else_has_deleted_is_done_with() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    a_slow_delete(&seed).await;
    seed.server.store().delete("pods", "a", "p").unwrap();
    seed.answered("p", 404).await;
    seed.settle().await;
    assert_eq!(seed.deletes("a").len(), 1);
    weeder.end().await;
}
