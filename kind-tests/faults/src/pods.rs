//! Pods of a control plane, and the EndpointSlices of the Services that they need.

use serde_json::{Value, json};

/// The label of the pods that Gardener's selectors ask for, and its value.
pub const ROLE: (&str, &str) = ("gardener.cloud/role", "controlplane");

/// How a pod's container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodHealth {
    /// It runs and is ready.
    Running,
    /// It crash-loops, and its kubelet says so.
    Waiting,
    /// It crash-loops, and its kubelet says no more than that it has ended.
    Terminated,
}

/// A pod of the ReplicaSet `owner`; one without an owner is not recreated.
pub fn pod(
    namespace: &str,
    name: &str,
    labels: &Value,
    owner: Option<&str>,
    state: PodHealth,
) -> Value {
    let owned = |name: &str| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": true});
    let owners = Vec::from_iter(owner.map(owned));
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": owners},
        "spec": {"containers": [{"name": "c", "image": "c"}]}, "status": status(state)})
}

/// The status of a pod that runs, or that crash-loops.
pub fn status(state: PodHealth) -> Value {
    let ready = state == PodHealth::Running;
    let state = match state {
        PodHealth::Running => json!({"running": {}}),
        PodHealth::Waiting => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        PodHealth::Terminated => json!({"terminated": {"exitCode": 1}}),
    };
    json!({"phase": "Running", "containerStatuses": [{"name": "c", "ready": ready, "restartCount": 3, "state": state}]})
}

/// The only slice of a Service.
pub fn slice(namespace: &str, service: &str, ready: bool) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": [],
        "metadata": {"name": format!("{service}-1"), "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}]})
}
