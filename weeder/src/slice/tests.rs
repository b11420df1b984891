use std::time::Duration;

use serde_json::{Value, json};
use weeder_core::config::Service;

use super::*;

fn pruned(slice: Value) -> Option<Slice> {
    let service = Service {
        name: "kube-apiserver".into(),
        selectors: Vec::new(),
    };
    let config = Config {
        watch_duration: Duration::from_secs(1),
        services: vec![service],
        max_deletions_per_owner: None,
    };
    let slice: PrunedSlice = serde_json::from_value(slice).expect("a slice");
    slice.pruned(&config)
}

fn ready(endpoints: Value) -> Vec<String> {
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": null,
        "metadata": {"name": "s", "namespace": "n", "labels": {SERVICE_NAME: "kube-apiserver"}},
        "endpoints": endpoints,
    });
    let slice = pruned(slice).expect("a slice of a configured Service");
    slice.ready.into_iter().collect()
}

#[test]
fn only_slices_of_configured_services_are_kept() {
    for labels in [Value::Null, json!({}), json!({SERVICE_NAME: "other"})] {
        assert_eq!(
            pruned(json!({"metadata": {"name": "s", "labels": labels}})),
            None
        );
    }
}

#[test]
fn an_endpoint_is_ready_unless_it_says_that_it_is_not() {
    for (conditions, is_ready) in [
        (
            json!({"ready": true, "serving": true, "terminating": false}),
            true,
        ),
        (json!({"ready": false}), false),
        (json!({"ready": null}), true),
        (json!({}), true),
        (Value::Null, true),
        (
            json!({"ready": false, "serving": true, "terminating": true}),
            false,
        ),
        // A Service with publishNotReadyAddresses.
        (json!({"ready": true, "serving": false}), false),
        (json!({"ready": true, "serving": null}), true),
    ] {
        let ready = ready(json!([{"addresses": ["a"], "conditions": conditions}]));
        assert_eq!(!ready.is_empty(), is_ready, "{conditions}");
    }
}

#[test]
fn an_endpoint_is_distinguished_by_what_it_leads_to() {
    let endpoint = |address: &str, uid: &str| json!({"addresses": [address], "targetRef": {"kind": "Pod", "uid": uid}});
    for (endpoints, expected) in [
        (
            json!([endpoint("10.0.0.1", "pod"), endpoint("fd00::1", "pod")]),
            &["pod"][..],
        ),
        (json!([endpoint("10.0.0.1", "new")]), &["new"]),
        (
            json!([{"addresses": ["10.0.0.1", "10.0.0.2"], "targetRef": null}]),
            &["10.0.0.1,10.0.0.2"],
        ),
        (json!([]), &[]),
        (Value::Null, &[]),
    ] {
        assert_eq!(ready(endpoints), expected);
    }
}
