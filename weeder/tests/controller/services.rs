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
