use std::time::Duration;

use serde_json::{Value, json};
use weeder_core::config::Service;

use super::*;

fn config() -> Config {
    let service = |name: &str| Service {
        name: name.into(),
        selectors: Vec::new(),
    };
    Config {
        watch_duration: Duration::from_secs(1),
        services: ["etcd-main-client", "kube-apiserver"].map(service).into(),
        max_deletions_per_owner: None,
    }
}

fn pruned(service: &str, endpoints: Value) -> Option<Slice> {
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": null,
        "metadata": {"name": "s", "namespace": "n", "labels": {SERVICE_NAME: service}},
        "endpoints": endpoints,
    });
    serde_json::from_value::<PrunedSlice>(slice)
        .expect("a slice")
        .pruned(&config())
}

fn ready(endpoints: Value) -> Vec<String> {
    pruned("kube-apiserver", endpoints)
        .expect("a slice of a configured Service")
        .ready
        .into_iter()
        .collect()
}

#[test]
fn only_slices_of_configured_services_are_kept() {
    assert_eq!(
        pruned("kube-apiserver", json!([])).map(|slice| slice.service),
        Some("kube-apiserver".into())
    );
    assert_eq!(pruned("other", json!([])), None);
    let unlabelled: PrunedSlice =
        serde_json::from_value(json!({"metadata": {"name": "s"}})).expect("a slice");
    assert_eq!(unlabelled.pruned(&config()), None);
}

#[test]
fn an_endpoint_is_ready_unless_it_says_that_it_is_not() {
    let endpoint = |address: &str, conditions: Value| json!({"addresses": [address], "conditions": conditions});
    let endpoints = json!([
        endpoint("yes", json!({"ready": true, "serving": true, "terminating": false})),
        endpoint("no", json!({"ready": false})),
        endpoint("null", json!({"ready": null})),
        endpoint("empty", json!({})),
        endpoint("terminating", json!({"ready": false, "serving": true, "terminating": true})),
        endpoint("pinned", json!({"ready": true, "serving": false})),
        endpoint("pinned and serving", json!({"ready": true, "serving": true})),
        endpoint("serving null", json!({"ready": true, "serving": null})),
        {"addresses": ["unsaid"]},
    ]);
    let expected = [
        "empty",
        "null",
        "pinned and serving",
        "serving null",
        "unsaid",
        "yes",
    ];
    assert_eq!(ready(endpoints), expected);
}

#[test]
fn no_endpoints_are_none_in_any_spelling() {
    assert!(ready(json!([])).is_empty());
    assert!(ready(Value::Null).is_empty());
}

#[test]
fn an_endpoint_is_distinguished_by_what_it_leads_to() {
    let endpoint = |address: &str, uid: Value| json!({"addresses": [address], "targetRef": {"kind": "Pod", "uid": uid}});
    let families = json!([
        endpoint("10.0.0.1", json!("pod")),
        endpoint("fd00::1", json!("pod"))
    ]);
    assert_eq!(
        ready(families),
        ["pod"],
        "both addresses of a pod are one endpoint"
    );
    assert_eq!(
        ready(json!([endpoint("10.0.0.1", json!("new"))])),
        ["new"],
        "a new pod at an old address is another"
    );
    assert_eq!(
        ready(json!([{"addresses": ["10.0.0.1", "10.0.0.2"], "targetRef": null}])),
        ["10.0.0.1,10.0.0.2"]
    );
}
