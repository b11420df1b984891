//! What both the agents' shoots and the weeder's pods are made of on the seed.

use anyhow::Result;
use serde_json::{Value, json};
use testbed::{KubeApi, gardener};

/// Creates the namespace of a shoot on the seed.
pub async fn create_namespace(seed: &KubeApi, name: &str) -> Result<()> {
    let mut namespace = gardener::namespace(name);
    namespace["metadata"]["labels"] = json!({"gardener.cloud/role": "shoot"});
    seed.create(&namespace).await
}

/// A Deployment of a shoot's control plane with these pods.
pub fn deployment(
    namespace: &str,
    name: &str,
    role: &str,
    replicas: i64,
    mut pod_spec: Value,
) -> Value {
    let labels = json!({"role": role, "gardener.cloud/role": "controlplane"});
    pod_spec["terminationGracePeriodSeconds"] = 1.into();
    pod_spec["automountServiceAccountToken"] = false.into();
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod_spec}}})
}

/// A Service over the pods that these labels select.
pub fn service(namespace: &str, name: &str, selector: Value, port: u16) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector, "ports": [{"port": port}]}})
}
