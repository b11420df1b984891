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
fn pod(change: impl FnOnce(&mut Value)) -> Result<DeletionCandidate, SkipReason> {
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

fn candidate(services: &[usize]) -> Result<DeletionCandidate, SkipReason> {
    let [uid, resource_version, owner] = ["pod", "7", "owner"].map(str::to_owned);
    Ok(DeletionCandidate { uid, resource_version, owner, services: services.to_vec() })
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
    let pod = json!({
        "metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true}]},
        "status": {"containerStatuses": waiting("CrashLoopBackOff")},
    });
    let pod = serde_json::from_value(pod).expect("a pod");
    assert_eq!(judge(&pod, &services.expect("a config").config.services), Err(SkipReason::NotSelected));
}

#[test]
fn init_containers_count_and_ephemeral_ones_do_not() {
    let in_state = |field: &str| pod(|pod| pod["status"] = json!({field: waiting("CrashLoopBackOff")}));
    assert_eq!(in_state("initContainerStatuses"), candidate(&[0]));
    assert_eq!(in_state("ephemeralContainerStatuses"), Err(SkipReason::NotCrashing));
}

#[test]
fn only_the_exact_reason_counts() {
    for reason in ["ImagePullBackOff", "ContainerCreating", "crashloopbackoff", "CrashLoopBackOff ", ""] {
        assert_eq!(pod(|pod| pod["status"]["containerStatuses"] = waiting(reason)), Err(SkipReason::NotCrashing), "{reason}");
    }
    for status in [json!(null), json!({}), json!({"containerStatuses": null}), json!({"containerStatuses": [{"state": null}]})] {
        assert_eq!(pod(|pod| pod["status"] = status), Err(SkipReason::NotCrashing));
    }
    let ended = json!([{"state": {"terminated": {"reason": "CrashLoopBackOff"}}}]);
    assert_eq!(pod(|pod| pod["status"]["containerStatuses"] = ended), Err(SkipReason::NotCrashing));
}

#[test]
fn a_pod_that_ends_already_is_left_alone() {
    assert_eq!(pod(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")), Err(SkipReason::Ending));
}

#[test]
fn a_pod_that_nobody_would_make_again_is_left_alone() {
    assert_eq!(pod(|pod| pod["metadata"]["ownerReferences"] = Value::Null), Err(SkipReason::NoController));
    assert_eq!(pod(|pod| pod["metadata"]["ownerReferences"][1]["controller"] = json!(false)), Err(SkipReason::NoController));
}

#[test]
fn a_mirror_pod_is_left_alone_although_its_node_owns_it() {
    let annotations = json!({"kubernetes.io/config.mirror": "hash"});
    assert_eq!(pod(|pod| pod["metadata"]["annotations"] = annotations), Err(SkipReason::Mirror));
}
