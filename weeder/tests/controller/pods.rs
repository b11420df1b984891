//! Which pods are deleted, and how.

use std::time::Duration;

use api_server::{Fault, When};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::seed::{ETCD, WeederSeed, healthy, owned_alone, pod, soon, terminated};

/// How long a DELETE is held up for something to happen meanwhile: well below the weeder's patience
/// of 10 s.
const MEANWHILE: Duration = Duration::from_secs(5);

/// Lets a DELETE of a crash-looping pod be under way, whose answer takes a while.
async fn a_slow_delete(seed: &WeederSeed, pod: Value) {
    seed.server
        .faults()
        .add(When::verb("delete", "pods").once(), Fault::Delay(MEANWHILE));
    seed.apply(pod);
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
async fn a_pod_that_crashes_in_an_init_container_is_deleted() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    let mut init = pod("a", "p", "apiserver");
    init["status"] = json!({"initContainerStatuses": init["status"]["containerStatuses"]});
    seed.apply(init);
    seed.recover("a", ETCD);
    seed.gone("a", "p").await;
    weeder.end().await;
}

#[tokio::test]
async fn a_pod_whose_container_stays_terminated_for_four_seconds_is_deleted() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.recover("a", ETCD);
    seed.settle().await;
    let shown = Instant::now();
    seed.apply(terminated("a", "p", 1, 1));
    seed.gone("a", "p").await;
    assert!(
        shown.elapsed() >= Duration::from_secs(4),
        "{:?}",
        shown.elapsed()
    );
    weeder.end().await;
}

#[tokio::test]
async fn a_pod_whose_container_ended_before_its_watch_and_window_began_is_deleted() {
    let seed = WeederSeed::start().await;
    seed.apply(terminated("a", "p", 7, 0));
    let weeder = seed.start_weeder().await;
    seed.recover("a", ETCD);
    seed.gone("a", "p").await;
    weeder.end().await;
}

#[tokio::test]
async fn what_is_restarted_at_once_or_has_ended_well_is_left_alone() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.recover("a", ETCD);
    let mut done = terminated("a", "done", 3, 0);
    done["spec"]["restartPolicy"] = json!("OnFailure");
    let mut failed = terminated("a", "failed", 3, 1);
    failed["status"]["phase"] = json!("Failed");
    let mut init = terminated("a", "init", 3, 0);
    init["status"]["initContainerStatuses"] = init["status"]["containerStatuses"].take();
    let mut sidecar = init.clone();
    sidecar["metadata"]["name"] = json!("sidecar");
    sidecar["spec"]["initContainers"] = json!([{"name": "c", "restartPolicy": "Always"}]);
    // The last one is due last.
    for pod in [terminated("a", "first", 0, 1), done, failed, init, sidecar] {
        seed.apply(pod);
    }
    seed.gone("a", "sidecar").await;
    seed.settle().await;
    assert_eq!(seed.deletes("a").len(), 1);
    weeder.end().await;
}

#[tokio::test]
async fn a_kubelet_that_restarts_the_container_before_the_delete_arrives_wins() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    a_slow_delete(&seed, terminated("a", "p", 1, 1)).await;
    seed.apply(healthy("a", "p", "apiserver"));
    seed.answered("p", 409).await;
    seed.settle().await;
    assert!(seed.has("a", "p"));
    assert_eq!(seed.deletes("a").len(), 1);
    seed.apply(terminated("a", "p", 2, 1));
    seed.gone("a", "p").await;
    weeder.end().await;
}

#[tokio::test]
async fn pods_that_nobody_makes_again_or_that_end_already_are_left_alone() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    let mut bare = pod("a", "bare", "apiserver");
    bare["metadata"]["ownerReferences"] = json!([]);
    let mut mirror = pod("a", "mirror", "apiserver");
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "hash"});
    let mut ending = pod("a", "ending", "apiserver");
    ending["metadata"]["finalizers"] = json!(["example.org/hold"]);
    for pod in [bare, mirror, ending] {
        seed.apply(pod);
    }
    seed.server.store().delete("pods", "a", "ending").unwrap();
    seed.settle().await;
    seed.apply(pod("a", "ordinary", "apiserver"));
    seed.recover("a", ETCD);
    seed.gone("a", "ordinary").await;
    seed.settle().await;
    assert_eq!(seed.deletes("a").len(), 1);
    weeder.end().await;
}

#[tokio::test]
async fn a_new_pod_of_the_same_name_survives_a_delete_that_was_meant_for_the_old_one() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    a_slow_delete(&seed, pod("a", "p", "apiserver")).await;
    seed.server.store().delete("pods", "a", "p").unwrap();
    seed.apply(healthy("a", "p", "apiserver"));
    seed.answered("p", 409).await;
    seed.settle().await;
    assert!(seed.has("a", "p"));
    assert_eq!(seed.deletes("a").len(), 1, "it is done with");
    weeder.end().await;
}

#[tokio::test]
async fn a_pod_that_gets_well_while_its_delete_is_on_the_way_is_left_alone() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    a_slow_delete(&seed, pod("a", "p", "apiserver")).await;
    seed.apply(healthy("a", "p", "apiserver"));
    seed.answered("p", 409).await;
    seed.settle().await;
    assert!(seed.has("a", "p"));
    assert_eq!(seed.deletes("a").len(), 1);
    seed.apply(pod("a", "p", "apiserver"));
    seed.gone("a", "p").await;
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
    a_slow_delete(&seed, pod("a", "p", "apiserver")).await;
    seed.server.store().delete("pods", "a", "p").unwrap();
    seed.answered("p", 404).await;
    seed.settle().await;
    assert_eq!(seed.deletes("a").len(), 1);
    weeder.end().await;
}

#[tokio::test]
async fn a_limit_holds_for_each_owner_and_window() {
    let seed = WeederSeed::start().await;
    let weeder = seed
        .start_weeder_with(
            "maxDeletionsPerOwner: 1",
            common::leader_election::Role::Alone,
        )
        .await;
    seed.watched(1).await;
    seed.recover("a", ETCD);
    for name in ["p", "q", "r"] {
        seed.apply(pod("a", name, "apiserver"));
        seed.settle().await;
    }
    assert_eq!(seed.deletes("a").len(), 1);
    seed.recover("a", ETCD);
    seed.settle().await;
    assert_eq!(seed.deletes("a").len(), 2);
    weeder.end().await;
}
