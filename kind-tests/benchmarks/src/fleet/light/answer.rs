//! What a light shoot answers: bodies as a real API server writes them, with all the fields that kubelets and controllers leave
//! there and a probe skips. Field numbers are those of Kubernetes' `generated.proto` files.

use bytes::Bytes;
pub use memory_api::protobuf::common::MEDIA_TYPE as PROTOBUF;
use memory_api::protobuf::common::{ListMeta, Timestamp, envelope};
use prost::Message;

use crate::fleet::heart::{Micros, SECOND};

/// What a kubelet's lease says about itself in managedFields, and a node, abridged to the fields that are large.
const LEASE_FIELDS: &str = r#"{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"0d5dd1e7-3dfa-46d8-9ee4-5a1fd0c4c02c\"}":{}}},"f:spec":{"f:holderIdentity":{},"f:leaseDurationSeconds":{},"f:renewTime":{}}}"#;
const NODE_FIELDS: &str = r#"{"f:status":{"f:conditions":{"k:{\"type\":\"DiskPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"MemoryPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"PIDPressure\"}":{"f:lastHeartbeatTime":{}},"k:{\"type\":\"Ready\"}":{"f:lastHeartbeatTime":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{}}},"f:images":{},"f:nodeInfo":{"f:bootID":{}}}}"#;
/// A kubelet reports at most so many images (nodeStatusMaxImages).
const IMAGES: usize = 50;

/// The name of a node, of a usual length.
pub fn node_name(node: usize) -> String {
    format!("shoot--fleet--light-worker-z1-6d8f9-{node:05}")
}

#[derive(Clone, PartialEq, Message)]
struct ObjectMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "3")]
    namespace: String,
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(string, tag = "6")]
    resource_version: String,
    #[prost(message, optional, tag = "8")]
    creation_timestamp: Option<Timestamp>,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: std::collections::BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: std::collections::BTreeMap<String, String>,
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<OwnerReference>,
    #[prost(message, repeated, tag = "17")]
    managed_fields: Vec<ManagedFields>,
}

#[derive(Clone, PartialEq, Message)]
struct OwnerReference {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    uid: String,
    #[prost(string, tag = "5")]
    api_version: String,
}

#[derive(Clone, PartialEq, Message)]
struct ManagedFields {
    #[prost(string, tag = "1")]
    manager: String,
    #[prost(string, tag = "2")]
    operation: String,
    #[prost(string, tag = "3")]
    api_version: String,
    #[prost(message, optional, tag = "4")]
    time: Option<Timestamp>,
    #[prost(string, tag = "6")]
    fields_type: String,
    #[prost(message, optional, tag = "7")]
    fields: Option<Fields>,
}

#[derive(Clone, PartialEq, Message)]
struct Fields {
    #[prost(bytes = "bytes", tag = "1")]
    raw: Bytes,
}

/// A list whose items are encoded already, or are leases that are about to be.
#[derive(Clone, PartialEq, Message)]
struct Items {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    items: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct Leases {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(message, repeated, tag = "2")]
    items: Vec<Lease>,
}

#[derive(Clone, PartialEq, Message)]
struct Lease {
    #[prost(bytes = "bytes", tag = "1")]
    metadata: Bytes,
    #[prost(message, optional, tag = "2")]
    spec: Option<LeaseSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct LeaseSpec {
    #[prost(string, tag = "1")]
    holder_identity: String,
    #[prost(int32, tag = "2")]
    lease_duration_seconds: i32,
    #[prost(message, optional, tag = "4")]
    renew_time: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "3")]
    status: Option<NodeStatus>,
}

#[derive(Clone, PartialEq, Message)]
struct NodeStatus {
    #[prost(message, repeated, tag = "4")]
    conditions: Vec<Condition>,
    #[prost(message, repeated, tag = "8")]
    images: Vec<Image>,
}

#[derive(Clone, PartialEq, Message)]
struct Condition {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(message, optional, tag = "3")]
    last_heartbeat_time: Option<Timestamp>,
    #[prost(string, tag = "5")]
    reason: String,
    #[prost(string, tag = "6")]
    message: String,
}

#[derive(Clone, PartialEq, Message)]
struct Image {
    #[prost(string, repeated, tag = "1")]
    names: Vec<String>,
    #[prost(int64, tag = "2")]
    size_bytes: i64,
}

/// What all light shoots of a process have in common.
pub struct Answers {
    names: Vec<String>,
    lease_metadata: Vec<Bytes>,
    nodes: Vec<Bytes>,
    lease_seconds: i32,
}

impl Answers {
    /// Answers about so many nodes, whose leases last for so long.
    pub fn new(nodes: usize, lease_seconds: i32) -> Self {
        let names: Vec<String> = (0..nodes).map(node_name).collect();
        let lease_metadata = names.iter().enumerate().map(|(at, name)| lease_metadata(at, name).encode_to_vec().into()).collect();
        let nodes = names.iter().enumerate().map(|(at, name)| node(at, name).encode_to_vec().into()).collect();
        Self { names, lease_metadata, nodes, lease_seconds }
    }

    /// The LeaseList of a shoot whose nodes have renewed at these moments.
    pub fn leases(&self, now: Micros, renewed: impl Iterator<Item = Micros>) -> Vec<u8> {
        let items = self.names.iter().zip(&self.lease_metadata).zip(renewed).map(|((name, metadata), at)| Lease {
            metadata: metadata.clone(),
            spec: Some(LeaseSpec {
                holder_identity: name.clone(),
                lease_duration_seconds: self.lease_seconds,
                renew_time: Some(timestamp(at)),
            }),
        });
        let list = Leases { metadata: Some(list_metadata(now, String::new())), items: items.collect() };
        envelope("coordination.k8s.io/v1", "LeaseList", list.encode_to_vec()).into()
    }

    /// A page of the NodeList: at most `limit` nodes from `begin` on.
    pub fn nodes(&self, now: Micros, begin: usize, limit: usize) -> Vec<u8> {
        let begin = begin.min(self.nodes.len());
        let end = begin.saturating_add(limit).min(self.nodes.len());
        let next = if end < self.nodes.len() { end.to_string() } else { String::new() };
        let list = Items { metadata: Some(list_metadata(now, next)), items: self.nodes[begin..end].to_vec() };
        envelope("v1", "NodeList", list.encode_to_vec()).into()
    }
}

fn list_metadata(now: Micros, next: String) -> ListMeta {
    ListMeta { resource_version: (now / SECOND).to_string(), r#continue: next, ..ListMeta::default() }
}

fn timestamp(at: Micros) -> Timestamp {
    // Below 10^9.
    let nanos = i32::try_from(at.rem_euclid(SECOND) * 1000).unwrap_or_default();
    Timestamp { seconds: at.div_euclid(SECOND), nanos }
}

fn uid(kind: u32, at: usize) -> String {
    format!("{kind:08x}-3dfa-46d8-9ee4-{at:012x}")
}

fn managed(manager: &str, api_version: &str, fields: &'static str) -> ManagedFields {
    ManagedFields {
        manager: manager.into(),
        operation: "Update".into(),
        api_version: api_version.into(),
        time: Some(Timestamp { seconds: 1_760_000_000, nanos: 0 }),
        fields_type: "FieldsV1".into(),
        fields: Some(Fields { raw: Bytes::from_static(fields.as_bytes()) }),
    }
}

fn lease_metadata(at: usize, name: &str) -> ObjectMeta {
    let owner = OwnerReference { kind: "Node".into(), name: name.into(), uid: uid(2, at), api_version: "v1".into() };
    ObjectMeta {
        name: name.into(),
        namespace: "kube-node-lease".into(),
        uid: uid(1, at),
        resource_version: (1_000_000 + at).to_string(),
        creation_timestamp: Some(Timestamp { seconds: 1_760_000_000, nanos: 0 }),
        owner_references: vec![owner],
        managed_fields: vec![managed("kubelet", "coordination.k8s.io/v1", LEASE_FIELDS)],
        ..ObjectMeta::default()
    }
}

fn node(at: usize, name: &str) -> Node {
    let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let labels = [
        ("worker.gardener.cloud/pool", "worker"),
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("node.kubernetes.io/instance-type", "m5.2xlarge"),
        ("topology.kubernetes.io/region", "eu-west-1"),
        ("topology.kubernetes.io/zone", "eu-west-1a"),
        ("worker.gardener.cloud/kubernetes-version", "1.36.3"),
        ("worker.gardener.cloud/system-components", "true"),
    ];
    let annotations = [
        ("node.alpha.kubernetes.io/ttl", "0"),
        ("volumes.kubernetes.io/controller-managed-attach-detach", "true"),
        ("checksum/cloud-config-data", "ad2f5b7c8e5a4f5fb59a6a6f8b0f7d2e1c3b4a5968778695a4b3c2d1e0f1a2b3"),
    ];
    let condition = |kind: &str, status: &str, reason: &str| Condition {
        r#type: kind.into(),
        status: status.into(),
        last_heartbeat_time: Some(Timestamp { seconds: 1_760_000_000, nanos: 0 }),
        reason: reason.into(),
        message: format!("kubelet says {reason} of itself"),
    };
    let image = |number: usize| {
        let repository = format!("registry.example.org/gardener-project/component-number-{number:02}");
        let names = vec![format!("{repository}@sha256:{:064x}", number * 7919), format!("{repository}:v1.{number}.0")];
        Image { names, size_bytes: 40_000_000 + number as i64 }
    };
    Node {
        metadata: Some(ObjectMeta {
            name: name.into(),
            uid: uid(2, at),
            resource_version: (2_000_000 + at).to_string(),
            creation_timestamp: Some(Timestamp { seconds: 1_760_000_000, nanos: 0 }),
            labels: labels.into_iter().map(pair).collect(),
            annotations: annotations.into_iter().map(pair).collect(),
            managed_fields: vec![managed("kubelet", "v1", NODE_FIELDS)],
            ..ObjectMeta::default()
        }),
        status: Some(NodeStatus {
            conditions: vec![
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady"),
            ],
            images: (0..IMAGES).map(image).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use memory_api::protobuf::common::unwrapped;

    use super::*;

    #[test]
    fn bodies_are_as_large_as_those_of_real_clusters() {
        let answers = Answers::new(100, 40);
        let leases = answers.leases(SECOND, (0..100).map(|at| at * SECOND));
        assert!((50_000..80_000).contains(&leases.len()), "{}", leases.len());
        let nodes = answers.nodes(SECOND, 0, 500);
        assert!((900_000..1_300_000).contains(&nodes.len()), "{}", nodes.len());
    }

    #[test]
    fn nodes_come_page_by_page() {
        let answers = Answers::new(5, 40);
        let page = |begin| {
            let items = Items::decode(unwrapped(&answers.nodes(SECOND, begin, 2)).unwrap()).unwrap();
            (items.items.len(), items.metadata.unwrap().r#continue)
        };
        assert_eq!([page(0), page(2), page(4)], [(2, "2".to_owned()), (2, "4".to_owned()), (1, String::new())]);
    }
}
