//! The protobuf form of the kinds a probe lists. Field numbers are those of Kubernetes' `generated.proto` files.

pub mod common;

use bytes::{BufMut, Bytes, BytesMut};
use chrono::DateTime;
use prost::{Message, encoding};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) use self::common::MEDIA_TYPE;
use self::common::{ListMeta, Timestamp, envelope};
use crate::{object::Object, resource::Resource, status::ApiError};

/// Field 2 of every list kind holds its items.
const ITEMS: u32 = 2;

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
    #[prost(int64, tag = "7")]
    generation: i64,
    #[prost(message, optional, tag = "8")]
    creation_timestamp: Option<Timestamp>,
    #[prost(message, optional, tag = "9")]
    deletion_timestamp: Option<Timestamp>,
    #[prost(btree_map = "string, string", tag = "11")]
    labels: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "12")]
    annotations: BTreeMap<String, String>,
    #[prost(string, repeated, tag = "14")]
    finalizers: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Lease {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "2")]
    spec: Option<LeaseSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct LeaseSpec {
    #[prost(string, optional, tag = "1")]
    holder_identity: Option<String>,
    #[prost(int32, optional, tag = "2")]
    lease_duration_seconds: Option<i32>,
    #[prost(message, optional, tag = "3")]
    acquire_time: Option<Timestamp>,
    #[prost(message, optional, tag = "4")]
    renew_time: Option<Timestamp>,
    #[prost(int32, optional, tag = "5")]
    lease_transitions: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "2")]
    spec: Option<NodeSpec>,
    #[prost(message, optional, tag = "3")]
    status: Option<NodeStatus>,
}

#[derive(Clone, PartialEq, Message)]
struct NodeSpec {
    #[prost(string, tag = "1")]
    pod_cidr: String,
    #[prost(string, tag = "3")]
    provider_id: String,
    #[prost(bool, tag = "4")]
    unschedulable: bool,
}

#[derive(Clone, PartialEq, Message)]
struct NodeStatus {
    #[prost(message, repeated, tag = "4")]
    conditions: Vec<NodeCondition>,
    #[prost(message, repeated, tag = "5")]
    addresses: Vec<NodeAddress>,
}

#[derive(Clone, PartialEq, Message)]
struct NodeCondition {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(message, optional, tag = "3")]
    last_heartbeat_time: Option<Timestamp>,
    #[prost(message, optional, tag = "4")]
    last_transition_time: Option<Timestamp>,
    #[prost(string, tag = "5")]
    reason: String,
    #[prost(string, tag = "6")]
    message: String,
}

#[derive(Clone, PartialEq, Message)]
struct NodeAddress {
    #[prost(string, tag = "1")]
    r#type: String,
    #[prost(string, tag = "2")]
    address: String,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(string, tag = "3")]
    message: String,
    #[prost(string, tag = "4")]
    reason: String,
    #[prost(message, optional, tag = "5")]
    details: Option<StatusDetails>,
    #[prost(int32, tag = "6")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct StatusDetails {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    group: String,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(int32, tag = "5")]
    retry_after_seconds: i32,
}

/// Whether a resource has a protobuf form here.
pub(crate) fn speaks(resource: &Resource) -> bool {
    matches!((resource.group.as_str(), resource.kind.as_str()), ("coordination.k8s.io", "Lease") | ("", "Node"))
}

/// The message of one object, without envelope.
pub(crate) fn encode_object(resource: &Resource, value: &Value) -> Option<Bytes> {
    let message = match (resource.group.as_str(), resource.kind.as_str()) {
        ("coordination.k8s.io", "Lease") => lease(value).encode_to_vec(),
        ("", "Node") => node(value).encode_to_vec(),
        _ => return None,
    };
    Some(message.into())
}

/// A whole response body with one object.
pub(crate) fn object_body(object: &Object) -> Option<Bytes> {
    Some(envelope(object.resource.api_version(), object.resource.kind.clone(), object.protobuf()?.clone()))
}

/// A whole response body with a list; `rest` is the token and how many objects are left behind it.
pub(crate) fn list_body(resource: &Resource, revision: u64, rest: Option<(&str, usize)>, items: &[&Object]) -> Option<Bytes> {
    let metadata = ListMeta {
        resource_version: revision.to_string(),
        r#continue: rest.map(|(token, _)| token.to_owned()).unwrap_or_default(),
        remaining_item_count: rest.map(|(_, count)| i64::try_from(count).unwrap_or(i64::MAX)),
    };
    let items: Vec<&Bytes> = items.iter().map(|item| item.protobuf()).collect::<Option<_>>()?;
    let mut raw = BytesMut::with_capacity(64 + items.iter().map(|item| item.len() + 6).sum::<usize>());
    encoding::message::encode(1, &metadata, &mut raw);
    for item in items {
        encoding::encode_key(ITEMS, encoding::WireType::LengthDelimited, &mut raw);
        encoding::encode_varint(item.len() as u64, &mut raw);
        raw.put_slice(item);
    }
    Some(envelope(resource.api_version(), format!("{}List", resource.kind), raw.freeze()))
}

/// A whole response body with an error.
pub(crate) fn status_body(error: &ApiError) -> Bytes {
    let details = &error.details;
    let status = Status {
        metadata: Some(ListMeta::default()),
        status: "Failure".to_owned(),
        message: error.message.clone(),
        reason: error.reason.clone(),
        details: Some(StatusDetails {
            name: details.name.clone(),
            group: details.group.clone(),
            kind: details.kind.clone(),
            retry_after_seconds: i32::try_from(details.retry_after_seconds).unwrap_or(i32::MAX),
        }),
        code: i32::from(error.code),
    };
    envelope("v1", "Status", status.encode_to_vec())
}

fn lease(value: &Value) -> Lease {
    let spec = &value["spec"];
    let number = |key: &str| spec[key].as_i64().and_then(|number| i32::try_from(number).ok());
    Lease {
        metadata: Some(metadata(&value["metadata"])),
        spec: Some(LeaseSpec {
            holder_identity: spec["holderIdentity"].as_str().map(str::to_owned),
            lease_duration_seconds: number("leaseDurationSeconds"),
            acquire_time: timestamp(&spec["acquireTime"]),
            renew_time: timestamp(&spec["renewTime"]),
            lease_transitions: number("leaseTransitions"),
        }),
    }
}

fn node(value: &Value) -> Node {
    let items = |key: &str| value["status"][key].as_array().into_iter().flatten();
    Node {
        metadata: Some(metadata(&value["metadata"])),
        spec: Some(NodeSpec {
            pod_cidr: text(&value["spec"]["podCIDR"]),
            provider_id: text(&value["spec"]["providerID"]),
            unschedulable: value["spec"]["unschedulable"].as_bool().unwrap_or_default(),
        }),
        status: Some(NodeStatus {
            conditions: items("conditions")
                .map(|condition| NodeCondition {
                    r#type: text(&condition["type"]),
                    status: text(&condition["status"]),
                    last_heartbeat_time: timestamp(&condition["lastHeartbeatTime"]),
                    last_transition_time: timestamp(&condition["lastTransitionTime"]),
                    reason: text(&condition["reason"]),
                    message: text(&condition["message"]),
                })
                .collect(),
            addresses: items("addresses")
                .map(|address| NodeAddress { r#type: text(&address["type"]), address: text(&address["address"]) })
                .collect(),
        }),
    }
}

fn metadata(value: &Value) -> ObjectMeta {
    ObjectMeta {
        name: text(&value["name"]),
        namespace: text(&value["namespace"]),
        uid: text(&value["uid"]),
        resource_version: text(&value["resourceVersion"]),
        generation: value["generation"].as_i64().unwrap_or_default(),
        creation_timestamp: timestamp(&value["creationTimestamp"]),
        deletion_timestamp: timestamp(&value["deletionTimestamp"]),
        labels: texts(&value["labels"]),
        annotations: texts(&value["annotations"]),
        finalizers: value["finalizers"].as_array().into_iter().flatten().map(text).collect(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> BTreeMap<String, String> {
    value.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}

fn timestamp(value: &Value) -> Option<Timestamp> {
    let stamp = DateTime::parse_from_rfc3339(value.as_str()?).ok()?;
    // The remainder of a second is below 10^9 except in a leap second, which Kubernetes does not know.
    let nanos = i32::try_from(stamp.timestamp_subsec_nanos()).unwrap_or_default();
    Some(Timestamp { seconds: stamp.timestamp(), nanos })
}
