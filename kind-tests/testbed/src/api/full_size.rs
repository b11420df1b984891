//! Leases and nodes as large as on a real API server, with all the fields that kubelets and
//! controllers leave there and a probe skips.

use serde_json::{Value, json};

/// What a kubelet's lease says about itself in managedFields, and a node, abridged to the fields
/// that are large.
const LEASE_FIELDS: &str = r#"{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"0d5dd1e7-3dfa-46d8-9ee4-5a1fd0c4c02c\"}":{}}},"f:spec":{"f:holderIdentity":{},"f:leaseDurationSeconds":{},"f:renewTime":{}}}"#;
const NODE_FIELDS: &str = r#"{"f:status":{"f:conditions":{"k:{\"type\":\"DiskPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"MemoryPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"PIDPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"Ready\"}":{"f:lastHeartbeatTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{}}},"f:images":{},"f:nodeInfo":{"f:bootID":{}}}}"#;
/// Those of a kubelet, of Gardener's node-problem-detector and of the network.
const CONDITIONS: [(&str, &str, &str); 10] = [
    ("KernelDeadlock", "False", "KernelHasNoDeadlock"),
    ("ReadonlyFilesystem", "False", "FilesystemIsNotReadOnly"),
    ("CorruptDockerOverlay2", "False", "NoCorruptDockerOverlay2"),
    (
        "FrequentKubeletRestart",
        "False",
        "NoFrequentKubeletRestart",
    ),
    ("NetworkUnavailable", "False", "CalicoIsUp"),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("InPlaceUpdate", "True", "CandidateForUpdate"),
    ("Ready", "True", "KubeletReady"),
];
/// A kubelet reports at most so many images (nodeStatusMaxImages).
const IMAGES: usize = 50;
const BEGIN: &str = "2025-10-09T08:53:20Z";

/// The name of a node, of a usual length. With the numbers ascending, names come in the order of an
/// API server.
pub fn node_name(number: usize) -> String {
    format!("shoot--fleet--light-worker-z1-6d8f9-{number:05}")
}

/// The lease of a node, without its renewTime.
pub fn lease(number: usize) -> Value {
    let name = node_name(number);
    json!({
        "metadata": {
            "name": name, "namespace": "kube-node-lease", "uid": uid(1, number), "resourceVersion": (1_000_000 + number).to_string(),
            "creationTimestamp": BEGIN,
            "ownerReferences": [{"kind": "Node", "name": name, "uid": uid(2, number), "apiVersion": "v1"}],
            "managedFields": managed("coordination.k8s.io/v1", LEASE_FIELDS),
        },
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40},
    })
}

/// A healthy node.
pub fn node(number: usize) -> Value {
    let labels = json!({
        "worker.gardener.cloud/pool": "worker",
        "kubernetes.io/hostname": node_name(number),
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "m5.2xlarge",
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": "eu-west-1a",
        "worker.gardener.cloud/kubernetes-version": "1.36.3",
        "worker.gardener.cloud/system-components": "true",
    });
    let annotations = json!({
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        "checksum/cloud-config-data": "ad2f5b7c8e5a4f5fb59a6a6f8b0f7d2e1c3b4a5968778695a4b3c2d1e0f1a2b3",
    });
    let conditions = CONDITIONS.map(|(kind, status, reason)| {
        let message = format!("what is said about {reason} at some length");
        json!({"type": kind, "status": status, "lastHeartbeatTime": BEGIN, "lastTransitionTime": BEGIN, "reason": reason, "message": message})
    });
    let image = |number: usize| {
        let repository = format!("registry.example.org/gardener/image-{number:02}");
        let names = [
            format!("{repository}@sha256:{:064x}", number * 7919),
            format!("{repository}:v1.{number}.0"),
        ];
        json!({"names": names, "sizeBytes": 40_000_000 + number})
    };
    json!({
        "metadata": {
            "name": node_name(number), "uid": uid(2, number), "resourceVersion": (2_000_000 + number).to_string(), "creationTimestamp": BEGIN,
            "labels": labels, "annotations": annotations, "managedFields": managed("v1", NODE_FIELDS),
        },
        "spec": {"podCIDR": "100.64.0.0/24", "providerID": format!("aws:///eu-west-1/{}", node_name(number))},
        "status": {"conditions": conditions, "images": (0..IMAGES).map(image).collect::<Vec<_>>()},
    })
}

fn uid(kind: u32, number: usize) -> String {
    format!("{kind:08x}-3dfa-46d8-9ee4-{number:012x}")
}

fn managed(api_version: &str, fields: &str) -> Value {
    let fields: Value = serde_json::from_str(fields).unwrap_or_default();
    json!([{"manager": "kubelet", "operation": "Update", "apiVersion": api_version, "time": BEGIN, "fieldsType": "FieldsV1", "fieldsV1": fields}])
}

#[cfg(test)]
mod tests {
    use super::super::protobuf;
    use super::*;

    #[test]
    fn leases_and_nodes_are_as_large_as_those_of_real_clusters() {
        let (lease, node) = (
            protobuf::lease(&lease(7)).len(),
            protobuf::node(&node(7)).len(),
        );
        assert!((480..560).contains(&lease), "{lease}");
        assert!((9_500..12_000).contains(&node), "{node}");
    }
}
