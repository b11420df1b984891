//! Pods of a control plane that may crash-loop, and the EndpointSlices of the Services that they
//! need.

use anyhow::Result;
use serde_json::{Value, json};

use crate::kube_api::KubeApi;
use crate::objects::object;

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
    let owners = owner.map_or(String::new(), |owner| {
        format!("{{apiVersion: apps/v1, kind: ReplicaSet, name: '{owner}', uid: '{owner}', controller: true}}")
    });
    let mut pod = object(&format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: "{name}", namespace: "{namespace}", labels: {labels}, ownerReferences: [{owners}]}}
spec:
  containers:
  - {{name: c, image: example.org/c, args: [--leader-elect=true], resources: {{requests: {{cpu: 100m}}}}}}
"#
    ));
    pod["status"] = status(health);
    pod
}

/// The status of a pod that runs, or that crash-loops.
pub fn status(health: PodHealth) -> Value {
    let state = match health {
        PodHealth::Running => "running: {}",
        PodHealth::Waiting => "waiting: {reason: CrashLoopBackOff}",
        PodHealth::Terminated => {
            r#"terminated: {exitCode: 1, startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:00:01Z"}"#
        }
    };
    let ready = health == PodHealth::Running;
    object(&format!(
        r#"
phase: Running
containerStatuses:
- {{name: c, image: example.org/c, imageID: "", ready: {ready}, restartCount: 3, state: {{{state}}}}}
"#
    ))
}

/// The only slice of a Service, which has its name.
pub fn slice(namespace: &str, service: &str, ready: bool) -> Value {
    object(&format!(
        r#"
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: "{service}", namespace: "{namespace}", labels: {{kubernetes.io/service-name: "{service}"}}}}
addressType: IPv4
ports: []
endpoints: [{{addresses: [10.0.0.1], conditions: {{ready: {ready}}}}}]
"#
    ))
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
