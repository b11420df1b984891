use std::time::Duration;

use api_server::{Fault, Network, When};
use serde_json::json;

use crate::client::{ApiBed, DEADLINE, deployment};

const KCM: &str = "/apis/apps/v1/namespaces/n/deployments/kube-controller-manager";

async fn bed() -> ApiBed {
    let bed = ApiBed::start().await;
    bed.server
        .store()
        .create(deployment("n", "kube-controller-manager", 2))
        .unwrap();
    bed
}

fn replicas(bed: &ApiBed) -> i64 {
    bed.server
        .store()
        .get("deployments.apps", "n", "kube-controller-manager")
        .unwrap()["spec"]["replicas"]
        .as_i64()
        .unwrap()
}

#[tokio::test]
async fn a_connection_closed_before_applying_leaves_things_as_they_were() {
    let bed = bed().await;
    let patch = || {
        let request = bed
            .request("PATCH", KCM)
            .header("content-type", "application/merge-patch+json");
        bed.send(request.body(json!({"spec": {"replicas": 0}}).to_string()))
    };
    let before = bed
        .server
        .faults()
        .add(When::verb("patch", "deployments.apps"), Fault::CloseBefore);
    assert!(patch().await.is_err());
    assert_eq!(replicas(&bed), 2);
    assert!(bed.server.faults().hits(before) >= 1);
    bed.server.faults().remove(before);
    bed.server
        .faults()
        .add(When::verb("patch", "deployments.apps"), Fault::CloseAfter);
    assert!(patch().await.is_err());
    assert_eq!(replicas(&bed), 0);
}

#[tokio::test]
async fn a_slow_answer_comes_piece_by_piece_and_whole() {
    let bed = bed().await;
    bed.server.faults().add(
        When::any().once(),
        Fault::Slow {
            bytes: 100,
            pause: Duration::from_millis(1),
        },
    );
    assert_eq!(bed.get(KCM).await.json()["kind"], "Deployment");
}

#[tokio::test]
async fn a_silent_network_holds_requests_until_it_ends() {
    let bed = bed().await;
    bed.get("/version").await;
    bed.server.set_network(Network::Silent);
    let request = tokio::spawn(bed.request("GET", "/version").send());
    let arrived = bed.server.requests().wait_for(|log| log.get(1).cloned());
    assert_eq!(
        tokio::time::timeout(DEADLINE, arrived)
            .await
            .unwrap()
            .status,
        None
    );
    assert!(!request.is_finished());
    bed.server.set_network(Network::Up);
    assert_eq!(request.await.unwrap().unwrap().status(), 200);
    assert_eq!(bed.server.requests().all()[1].status, Some(200));
}

#[tokio::test]
async fn a_stopped_server_is_gone() {
    let bed = bed().await;
    bed.get("/version").await;
    let (address, http) = (bed.server.url(), bed.http.clone());
    bed.server.shutdown().await;
    assert!(http.get(format!("{address}/version")).send().await.is_err());
}
