use serde_json::{Value, json};

use super::*;
use crate::config::Config;

const CONFIG: &str = "
servicesAndDependantSelectors:
  etcd-main-client: {podSelectors: [{matchLabels: {role: apiserver}}]}
  kube-apiserver: {podSelectors: [{matchExpressions: [{key: role, operator: NotIn, values: [apiserver]}]}, {matchLabels: {both: 'yes'}}]}
";

fn waiting(reason: &str) -> Value {
    json!([{"name": "fine", "state": {"running": {}}}, {"name": "c", "state": {"waiting": {"reason": reason}}}])
}

/// A pod that crash-loops, with these changes.
fn pod(change: impl FnOnce(&mut Value)) -> Option<DeletionCandidate> {
    let mut pod = json!({
        "metadata": {
            "name": "p", "uid": "pod", "resourceVersion": "7", "labels": {"role": "apiserver"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other"},
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "owner", "controller": true},
            ],
        },
        "spec": {"containers": "not read"},
        "status": {"containerStatuses": waiting("CrashLoopBackOff")},
    });
    change(&mut pod);
    let services = Config::parse(CONFIG).expect("a config").config.services;
    judge(&serde_json::from_value(pod).expect("a pod"), &services)
}

fn candidate(services: &[usize]) -> Option<DeletionCandidate> {
    let [uid, resource_version, owner] = ["pod", "7", "owner"].map(str::to_owned);
    Some(DeletionCandidate { uid, resource_version, owner, services: services.to_vec() })
}

#[test]
fn a_crash_looping_pod_that_waits_for_a_service_may_be_deleted() {
    assert_eq!(pod(|_| ()), candidate(&[0]));
    assert_eq!(pod(|pod| pod["metadata"]["labels"] = json!({"role": "scheduler"})), candidate(&[1]));
    assert_eq!(pod(|pod| pod["metadata"]["labels"] = json!({"role": "apiserver", "both": "yes"})), candidate(&[0, 1]));
    assert_eq!(pod(|pod| pod["metadata"]["labels"] = Value::Null), candidate(&[1]), "no labels are labels too");
}

#[test]
fn a_pod_that_no_selector_matches_is_left_alone() {
    let services = Config::parse("servicesAndDependantSelectors: {s: {podSelectors: [{matchLabels: {a: b}}, null]}}");
    let services = services.expect("a config").config.services;
    let judged = |labels: Value| {
        let owner = json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true});
        let status = json!({"containerStatuses": waiting("CrashLoopBackOff")});
        let pod = json!({"metadata": {"labels": labels, "ownerReferences": [owner]}, "status": status});
        judge(&serde_json::from_value(pod).expect("a pod"), &services)
    };
    assert_eq!(judged(Value::Null), None);
    assert_eq!(judged(json!({"a": "c"})), None);
    assert_eq!(judged(json!({"a": "b"})).map(|candidate| candidate.services), Some(vec![0]), "all else is as it must be");
}

#[test]
fn init_containers_count_and_ephemeral_ones_do_not() {
    let in_state = |field: &str| pod(|pod| pod["status"] = json!({field: waiting("CrashLoopBackOff")}));
    assert_eq!(in_state("initContainerStatuses"), candidate(&[0]));
    assert_eq!(in_state("ephemeralContainerStatuses"), None);
}

#[test]
fn only_the_exact_reason_counts() {
    for reason in ["ImagePullBackOff", "ContainerCreating", "crashloopbackoff", "CrashLoopBackOff ", ""] {
        assert_eq!(pod(|pod| pod["status"]["containerStatuses"] = waiting(reason)), None, "{reason}");
    }
    for status in [json!(null), json!({}), json!({"containerStatuses": null}), json!({"containerStatuses": [{"state": null}]})] {
        assert_eq!(pod(|pod| pod["status"] = status), None);
    }
    let ended = json!([{"state": {"terminated": {"reason": "CrashLoopBackOff"}}}]);
    assert_eq!(pod(|pod| pod["status"]["containerStatuses"] = ended), None);
}

#[test]
fn a_pod_that_ends_already_is_left_alone() {
    assert_eq!(pod(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")), None);
}

#[test]
fn a_pod_that_nobody_would_make_again_is_left_alone() {
    assert_eq!(pod(|pod| pod["metadata"]["ownerReferences"] = Value::Null), None);
    assert_eq!(pod(|pod| pod["metadata"]["ownerReferences"][1]["controller"] = json!(false)), None);
}

#[test]
fn a_mirror_pod_is_left_alone_although_its_node_owns_it() {
    let annotations = json!({"kubernetes.io/config.mirror": "hash"});
    assert_eq!(pod(|pod| pod["metadata"]["annotations"] = annotations), None);
}
