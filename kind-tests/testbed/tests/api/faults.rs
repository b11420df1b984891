use std::time::Duration;

use serde_json::json;
use testbed::api::{Fault, Network, Options, Serving, When, gardener};

use crate::client::{Bed, DEADLINE};

const KCM: &str = "/apis/apps/v1/namespaces/n/deployments/kube-controller-manager";

async fn bed() -> Bed {
    let bed = Bed::start().await;
    bed.server.store().create(gardener::deployment("n", "kube-controller-manager", 2)).unwrap();
    bed
}

fn replicas(bed: &Bed) -> i64 {
    bed.server.store().get("deployments.apps", "n", "kube-controller-manager").unwrap()["spec"]["replicas"].as_i64().unwrap()
}

#[tokio::test]
async fn a_status_fault_speaks_the_api_form_and_wears_out() {
    let bed = bed().await;
    bed.server.faults().add(When::request("GET", "/version").once(), Fault::throttle(7));
    let answer = bed.get("/version").await;
    assert_eq!((answer.code, answer.headers["retry-after"].to_str().unwrap()), (429, "7"));
    assert_eq!(answer.json()["details"]["retryAfterSeconds"], 7);
    assert_eq!(bed.get("/version").await.code, 200);
}

#[tokio::test]
async fn a_connection_closed_before_applying_leaves_things_as_they_were() {
    let bed = bed().await;
    let patch = || {
        let request = bed.request("PATCH", KCM).header("content-type", "application/merge-patch+json");
        bed.send(request.body(json!({"spec": {"replicas": 0}}).to_string()))
    };
    let before = bed.server.faults().add(When::verb("patch", "deployments.apps"), Fault::CloseBefore);
    assert!(patch().await.is_err());
    assert_eq!(replicas(&bed), 2);
    assert!(bed.server.faults().hits(before) >= 1);
    bed.server.faults().remove(before);
    bed.server.faults().add(When::verb("patch", "deployments.apps"), Fault::CloseAfter);
    assert!(patch().await.is_err());
    assert_eq!(replicas(&bed), 0);
}

#[tokio::test]
async fn stalled_requests_are_logged_and_never_answered() {
    let bed = bed().await;
    bed.server.faults().add(When::any(), Fault::Stall);
    let request = tokio::spawn(bed.send_owned("/version"));
    let seen = bed.server.requests().wait_for(|log| log.front().cloned());
    let seen = tokio::time::timeout(DEADLINE, seen).await.unwrap();
    assert_eq!((seen.path.as_str(), seen.status), ("/version", None));
    assert!(!request.is_finished());
    request.abort();
}

impl Bed {
    fn send_owned(&self, path: &str) -> impl Future<Output = Result<reqwest::Response, reqwest::Error>> + Send + 'static {
        self.request("GET", path).send()
    }
}

#[tokio::test]
async fn bodies_can_be_garbage_cut_slow_huge_and_endless() {
    let bed = bed().await;
    let faults = bed.server.faults();
    faults.add(When::any().once(), Fault::Garbage);
    assert!(serde_json::from_slice::<serde_json::Value>(&bed.get(KCM).await.body).is_err());
    faults.add(When::any().once(), Fault::Truncate);
    assert!(bed.send(bed.request("GET", KCM)).await.is_err());
    faults.add(When::any().once(), Fault::Slow { bytes: 100, pause: Duration::from_millis(1) });
    assert_eq!(bed.get(KCM).await.json()["kind"], "Deployment");
    faults.add(When::any().once(), Fault::Oversized(5_000_000));
    assert!(bed.get(KCM).await.body.len() > 4_900_000);
    faults.add(When::any().once(), Fault::Endless { bytes: 1000, pause: Duration::from_millis(1) });
    let mut endless = bed.request("GET", KCM).send().await.unwrap();
    let mut received = 0;
    while received < 20_000 {
        received += endless.chunk().await.unwrap().expect("it never ends").len();
    }
    drop(endless);
    faults.add(When::any().once(), Fault::Answer { code: 307, headers: vec![("x-a".into(), "b".into())], body: "hello".into() });
    let free = bed.get("/version").await;
    assert_eq!((free.code, free.body.as_slice(), &free.headers["x-a"]), (307, b"hello".as_slice(), &"b".parse().unwrap()));
}

#[tokio::test]
async fn one_connection_serves_many_requests_until_it_is_cut() {
    let bed = bed().await;
    for _ in 0..5 {
        assert_eq!(bed.get("/version").await.code, 200);
    }
    assert_eq!(bed.server.connections().handshakes, 1);
    bed.server.cut_connections();
    bed.server.set_network(Network::Refused);
    let error = bed.send(bed.request("GET", "/version")).await.err().expect("nobody listens");
    assert!(error.is_connect() || error.is_request(), "{error:?}");
    bed.server.set_network(Network::Up);
    let served = async {
        while bed.send(bed.request("GET", "/version")).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, served).await.expect("the port listens again");
    assert!(bed.server.connections().handshakes >= 2);
}

#[tokio::test]
async fn a_silent_network_holds_requests_until_it_ends() {
    let bed = bed().await;
    bed.get("/version").await;
    bed.server.set_network(Network::Silent);
    let request = tokio::spawn(bed.send_owned("/version"));
    tokio::time::timeout(DEADLINE, bed.server.requests().wait_for(|log| (log.len() == 2).then_some(()))).await.unwrap();
    assert!(!request.is_finished());
    bed.server.set_network(Network::Up);
    assert_eq!(request.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn certificates_can_be_expired_or_of_another_name() {
    for serving in [
        Serving { expired: true, ..Serving::default() },
        Serving { names: vec!["other.example.org".into()], ..Serving::default() },
    ] {
        let bed = Bed::with(Options { serving, ..Options::default() }).await;
        assert!(bed.send(bed.request("GET", "/version")).await.is_err());
        assert_eq!(bed.server.connections().open, 0);
    }
}

#[tokio::test]
async fn a_stopped_server_is_gone() {
    let bed = bed().await;
    bed.get("/version").await;
    let (address, http) = (bed.server.url(), bed.http.clone());
    bed.server.shutdown().await;
    assert!(http.get(format!("{address}/version")).send().await.is_err());
}
