//! What a light shoot's leases and nodes say: as on a real API server, with all the fields that kubelets and controllers leave
//! there and a probe skips.

use bytes::Bytes;
use chrono::DateTime;
use serde_json::{Value, json};
use testbed::api::protobuf::wire::{message, number, text, time};
use testbed::api::protobuf::{lease, node};

use crate::fleet::heart::Micros;

/// What a kubelet's lease says about itself in managedFields, and a node, abridged to the fields that are large.
const LEASE_FIELDS: &str = r#"{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"0d5dd1e7-3dfa-46d8-9ee4-5a1fd0c4c02c\"}":{}}},"f:spec":{"f:holderIdentity":{},"f:leaseDurationSeconds":{},"f:renewTime":{}}}"#;
const NODE_FIELDS: &str = r#"{"f:status":{"f:conditions":{"k:{\"type\":\"DiskPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"MemoryPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"PIDPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"Ready\"}":{"f:lastHeartbeatTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{}}},"f:images":{},"f:nodeInfo":{"f:bootID":{}}}}"#;
/// A kubelet reports at most so many images (nodeStatusMaxImages).
const IMAGES: usize = 50;
const BEGIN: &str = "2025-10-09T08:53:20Z";

/// The name of a node, of a usual length.
pub fn node_name(node: usize) -> String {
    format!("shoot--fleet--light-worker-z1-6d8f9-{node:05}")
}

/// What all light shoots of a process have in common.
pub struct Answers {
    /// Of each lease what does not change: its metadata, and the beginning of its spec.
    leases: Vec<(Bytes, Vec<u8>)>,
    nodes: Vec<Bytes>,
}

impl Answers {
    /// Answers about so many nodes, whose leases last for so long.
    pub fn new(nodes: usize, lease_seconds: u32) -> Self {
        let fixed = |at: usize| (lease(&lease_of(at)), [text(1, &node_name(at)), number(2, lease_seconds.into())].concat());
        Self { leases: (0..nodes).map(fixed).collect(), nodes: (0..nodes).map(|at| node(&node_of(at))).collect() }
    }

    /// The leases of a shoot whose nodes have renewed at these moments.
    pub fn leases(&self, renewed: impl Iterator<Item = Micros>) -> Vec<Bytes> {
        let lease = |((metadata, spec), at): (&(Bytes, Vec<u8>), Micros)| {
            let spec = message(2, &[spec.clone(), time(4, DateTime::from_timestamp_micros(at).unwrap_or_default())]);
            Bytes::from([metadata, spec.as_slice()].concat())
        };
        self.leases.iter().zip(renewed).map(lease).collect()
    }

    /// The nodes.
    pub fn nodes(&self) -> Vec<Bytes> {
        self.nodes.clone()
    }
}

fn uid(kind: u32, at: usize) -> String {
    format!("{kind:08x}-3dfa-46d8-9ee4-{at:012x}")
}

fn managed(api_version: &str, fields: &str) -> Value {
    let fields: Value = serde_json::from_str(fields).unwrap_or_default();
    json!([{"manager": "kubelet", "operation": "Update", "apiVersion": api_version, "time": BEGIN, "fieldsType": "FieldsV1", "fieldsV1": fields}])
}

/// A lease without its spec.
fn lease_of(at: usize) -> Value {
    json!({"metadata": {
        "name": node_name(at), "namespace": "kube-node-lease", "uid": uid(1, at), "resourceVersion": (1_000_000 + at).to_string(),
        "creationTimestamp": BEGIN,
        "ownerReferences": [{"kind": "Node", "name": node_name(at), "uid": uid(2, at), "apiVersion": "v1"}],
        "managedFields": managed("coordination.k8s.io/v1", LEASE_FIELDS),
    }})
}

fn node_of(at: usize) -> Value {
    let labels = json!({
        "worker.gardener.cloud/pool": "worker",
        "kubernetes.io/hostname": node_name(at),
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
    let conditions = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    .map(|(kind, status, reason)| {
        let message = format!("kubelet says {reason} of itself");
        json!({"type": kind, "status": status, "lastHeartbeatTime": BEGIN, "reason": reason, "message": message})
    });
    let image = |number: usize| {
        let repository = format!("registry.example.org/gardener-project/component-number-{number:02}");
        let names = [format!("{repository}@sha256:{:064x}", number * 7919), format!("{repository}:v1.{number}.0")];
        json!({"names": names, "sizeBytes": 40_000_000 + number})
    };
    json!({
        "metadata": {
            "name": node_name(at), "uid": uid(2, at), "resourceVersion": (2_000_000 + at).to_string(), "creationTimestamp": BEGIN,
            "labels": labels, "annotations": annotations, "managedFields": managed("v1", NODE_FIELDS),
        },
        "status": {"conditions": conditions, "images": (0..IMAGES).map(image).collect::<Vec<_>>()},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::heart::SECOND;

    #[test]
    fn bodies_are_as_large_as_those_of_real_clusters() {
        let answers = Answers::new(100, 40);
        let size = |items: Vec<Bytes>| items.iter().map(Bytes::len).sum::<usize>();
        let leases = size(answers.leases((0..100).map(|at| at * SECOND)));
        assert!((50_000..80_000).contains(&leases), "{leases}");
        let nodes = size(answers.nodes());
        assert!((900_000..1_300_000).contains(&nodes), "{nodes}");
    }
}
