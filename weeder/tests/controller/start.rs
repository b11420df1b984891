//! What a start in a large seed costs, and what it does not delay.

use api_server::Record;
use tokio::time::Instant;

use crate::seed::{API, ETCD, SLICES, WeederSeed, healthy, pod, soon};

const SHOOTS: usize = 300;

/// Each shoot has two Services and four pods.
fn fill(seed: &WeederSeed) {
    for shoot in 0..SHOOTS {
        let namespace = format!("shoot--garden--{shoot}");
        seed.slice(&namespace, ETCD, &[("etcd-main-0", true)]);
        seed.slice(&namespace, API, &[("kube-apiserver-1", true)]);
        seed.apply(healthy(&namespace, "etcd-main-0", "main"));
        for role in ["apiserver", "controller-manager", "scheduler"] {
            seed.apply(healthy(&namespace, role, role));
        }
    }
}

#[tokio::test]
async fn a_start_costs_few_requests_and_none_that_is_forbidden() {
    let seed = WeederSeed::start().await;
    fill(&seed);
    let weeder = seed.start_weeder().await;
    seed.settle().await;
    let requests: Vec<Record> = seed
        .server
        .requests()
        .all()
        .into_iter()
        .filter(|record| record.verb != "delete")
        .collect();
    let pages = |objects: usize| objects.div_ceil(500);
    // The pods of etcd are of no interest to any selector, so they are not even listed.
    let expected = pages(2 * SHOOTS) + pages(3 * SHOOTS) + 2;
    assert_eq!(requests.len(), expected, "{requests:#?}");
    assert!(
        seed.server
            .requests()
            .all()
            .iter()
            .all(|record| record.status != Some(403))
    );
    weeder.end().await;
}

#[tokio::test]
async fn the_api_server_is_asked_for_no_more_than_the_selectors_need() {
    let seed = WeederSeed::start().await;
    let weeder = seed.start_weeder().await;
    let lists = seed.server.requests().all();
    let query = |resource: &str| {
        let list = lists
            .iter()
            .find(|record| record.verb == "list" && record.resource == resource)
            .unwrap();
        list.query
            .replace("%20", "+")
            .replace("%28", "(")
            .replace("%29", ")")
            .replace("%2C", ",")
            .replace("%2F", "/")
    };
    let slices = query(SLICES);
    assert!(
        slices.contains(
            "labelSelector=kubernetes.io/service-name+in+(etcd-main-client,kube-apiserver)"
        ),
        "{slices}"
    );
    let pods = query("pods");
    assert!(
        pods.contains("labelSelector=gardener.cloud/role+in+(controlplane),role+notin+(main)"),
        "{pods}"
    );
    weeder.end().await;
}

#[tokio::test]
async fn a_recovery_is_acted_upon_at_once_while_the_first_windows_of_a_large_seed_open() {
    let seed = WeederSeed::start().await;
    fill(&seed);
    for shoot in 0..SHOOTS {
        seed.apply(pod(
            &format!("shoot--garden--{shoot}"),
            "crashing",
            "scheduler",
        ));
    }
    let start = Instant::now();
    let weeder = seed
        .start_weeder_with("watchDuration: 1m", common::leader_election::Role::Alone)
        .await;
    seed.watched(1).await;
    let recovery = Instant::now();
    seed.apply(pod("recovering", "p", "apiserver"));
    seed.recover("recovering", ETCD);
    seed.gone("recovering", "p").await;
    assert!(recovery.elapsed().as_secs() < 5, "{:?}", recovery.elapsed());
    let all = seed.server.store().wait_for(|store| {
        let crashing = store
            .list("pods", None)
            .iter()
            .any(|pod| pod["metadata"]["name"] == "crashing");
        (!crashing).then_some(())
    });
    soon("the first windows", all).await;
    assert!(
        start.elapsed().as_secs_f64() > 2.0,
        "they are spread over 6 s"
    );
    weeder.end().await;
}
