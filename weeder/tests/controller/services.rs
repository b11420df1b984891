//! Which Services' recoveries are acted upon.

use crate::seed::{API, ETCD, WeederSeed, owned_alone, pod};

#[tokio::test]
async fn a_recovery_restarts_the_dependants_of_that_service_only() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.apply(pod("a", "kube-apiserver-1", "apiserver"));
    seed.apply(pod("a", "kube-controller-manager-1", "controller-manager"));
    seed.apply(pod("a", "etcd-main-0", "main"));
    seed.apply(pod("b", "kube-apiserver-1", "apiserver"));
    seed.recover("a", ETCD);
    seed.gone("a", "kube-apiserver-1").await;
    seed.settle().await;
    assert!(
        seed.has("a", "kube-controller-manager-1")
            && seed.has("a", "etcd-main-0")
            && seed.has("b", "kube-apiserver-1")
    );
    seed.apply(owned_alone(pod("a", "kube-apiserver-2", "apiserver")));
    seed.gone("a", "kube-apiserver-2").await;
    seed.apply(pod("c", "kube-apiserver-3", "apiserver"));
    seed.apply(pod("c", "etcd-main-0", "main"));
    seed.apply(pod("c", "kube-scheduler-1", "scheduler"));
    seed.recover("c", API);
    seed.gone("c", "kube-scheduler-1").await;
    seed.settle().await;
    assert!(seed.has("c", "kube-apiserver-3") && seed.has("c", "etcd-main-0"));
    weeder.end().await;
}

#[tokio::test]
async fn other_services_and_slices_without_a_service_are_not_acted_upon() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.apply(pod("a", "p", "apiserver"));
    seed.recover("a", "etcd-events-client");
    let mut slice = seed
        .server
        .store()
        .get(crate::seed::SLICES, "a", "etcd-events-client")
        .unwrap();
    slice["metadata"]["labels"] = serde_json::Value::Null;
    seed.apply(slice);
    seed.settle().await;
    assert!(seed.deletes("a").is_empty());
    weeder.end().await;
}

#[tokio::test]
async fn a_service_at_zero_endpoints_is_not_ready_and_opens_a_window_on_the_way_back() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.slice("a", API, &[("one", true)]);
    seed.slice("a", API, &[("one", false)]);
    seed.slice("a", API, &[]);
    seed.settle().await;
    seed.apply(pod("a", "p", "scheduler"));
    seed.settle().await;
    assert!(
        seed.deletes("a").is_empty(),
        "scaled to zero is no recovery"
    );
    seed.slice("a", API, &[("two", true)]);
    seed.gone("a", "p").await;
    weeder.end().await;
}

#[tokio::test]
async fn one_ready_member_of_three_is_enough() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.apply(pod("a", "p", "apiserver"));
    seed.slice("a", ETCD, &[("0", false), ("1", false), ("2", false)]);
    seed.slice("a", ETCD, &[("0", false), ("1", true), ("2", false)]);
    seed.gone("a", "p").await;
    weeder.end().await;
}

#[tokio::test]
async fn two_slices_of_a_service_are_one_recovery() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    for pods in ["p", "q"] {
        seed.apply(pod("a", pods, "apiserver"));
    }
    seed.named_slice("a", "ipv4", ETCD, &[("0", true)]);
    seed.named_slice("a", "ipv6", ETCD, &[("0", true)]);
    seed.gone("a", "p").await;
    seed.gone("a", "q").await;
    seed.settle().await;
    assert_eq!(seed.deletes("a").len(), 2, "once each");
    weeder.end().await;
}

#[tokio::test]
async fn while_a_service_is_down_its_dependants_are_left_alone() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    seed.recover("a", ETCD);
    seed.apply(pod("a", "before", "apiserver"));
    seed.gone("a", "before").await;
    seed.slice("a", ETCD, &[("endpoint", false)]);
    seed.settle().await;
    seed.apply(pod("a", "meanwhile", "apiserver"));
    seed.settle().await;
    assert_eq!(seed.deletes("a").len(), 1);
    seed.server
        .store()
        .delete(crate::seed::SLICES, "a", ETCD)
        .unwrap();
    seed.settle().await;
    assert_eq!(seed.deletes("a").len(), 1, "nor when its slice vanishes");
    weeder.end().await;
}
