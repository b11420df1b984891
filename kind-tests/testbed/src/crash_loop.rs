//! Pods of a control plane that may crash-loop, and the EndpointSlices of the Services that they
//! need.

use anyhow::Result;
use serde_json::{Value, json};

use crate::kube_api::KubeApi;

/// The label of the pods that Gardener's selectors ask for, and its value.
pub const ROLE: (&str, &str) = ("gardener.cloud/role", "controlplane");

/// How a pod's container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodHealth {
    /// It runs and is ready.
    Running,
    /// It crash-loops, and its kubelet says so.
    Waiting,
    /// It crash-loops, and its kubelet says no more than that it has ended after a short run.
    Terminated,
}

/// A pod of the ReplicaSet `owner`; one without an owner is not recreated.
pub fn pod(
    namespace: &str,
    name: &str,
    labels: &Value,
    owner: Option<&str>,
    health: PodHealth,
) -> Value {
    let owned = |name: &str| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": true});
    let owners = Vec::from_iter(owner.map(owned));
    let container = json!({"name": "c", "image": "example.org/c", "args": ["--leader-elect=true"], "resources": {"requests": {"cpu": "100m"}}});
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "ownerReferences": owners},
        "spec": {"containers": [container]}, "status": status(health)})
}

/// The status of a pod that runs, or that crash-loops.
pub fn status(health: PodHealth) -> Value {
    let state = match health {
        PodHealth::Running => json!({"running": {}}),
        PodHealth::Waiting => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        PodHealth::Terminated => {
            json!({"terminated": {"exitCode": 1, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}})
        }
    };
    let ready = health == PodHealth::Running;
    let container = json!({"name": "c", "image": "example.org/c", "imageID": "", "ready": ready, "restartCount": 3, "state": state});
    json!({"phase": "Running", "containerStatuses": [container]})
}

/// The only slice of a Service, which has its name.
pub fn slice(namespace: &str, service: &str, ready: bool) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": [],
        "metadata": {"name": service, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}]})
}

/// A Service becomes ready or not.
pub async fn set_ready(api: &KubeApi, namespace: &str, service: &str, ready: bool) -> Result<()> {
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{service}");
    let endpoints = &slice(namespace, service, ready)["endpoints"];
    api.merge(&path, &json!({"endpoints": endpoints})).await
}

/// A pod is so from now on.
pub async fn set_health(
    api: &KubeApi,
    namespace: &str,
    pod: &str,
    health: PodHealth,
) -> Result<()> {
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/status");
    api.merge(&path, &json!({"status": status(health)})).await
}
