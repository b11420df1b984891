//! Leases and nodes on the wire: Kubernetes' protobuf with all but a few fields left out, and JSON where a server
//! does not speak it. Field numbers are those of Kubernetes' `generated.proto` files; unknown fields are skipped.

use std::collections::HashMap;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use prost::Message;
use serde::Deserialize;

use crate::core::lease::LeaseRecord;
use crate::core::verdict::{NodeCondition, NodeRecord};

/// What every protobuf body of Kubernetes begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Why an answer is not the complete list it should be.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Neither protobuf nor JSON.
    #[error("the answer is {0:?}, neither Kubernetes protobuf nor JSON")]
    ContentType(String),
    /// A protobuf body without Kubernetes' magic.
    #[error("the answer does not begin like Kubernetes protobuf")]
    Magic,
    /// The protobuf is broken.
    #[error("the protobuf is broken")]
    Protobuf(#[from] prost::DecodeError),
    /// The JSON is broken.
    #[error("the JSON is broken")]
    Json(#[from] serde_json::Error),
    /// Another object than was asked for.
    #[error("the answer is a {found:?}, not a {expected}")]
    Kind {
        /// What was asked for.
        expected: &'static str,
        /// What came.
        found: String,
    },
    /// No list of an API server is without a resourceVersion.
    #[error("the list has no resourceVersion")]
    NoResourceVersion,
    /// A timestamp outside of what a calendar knows.
    #[error("renewTime of lease {0:?} is not a point in time")]
    RenewTime(String),
}

/// One page of a list.
#[derive(Debug)]
pub struct Page<T> {
    /// The objects.
    pub items: Vec<T>,
    /// Where the next page begins; none on the last one.
    pub next: Option<String>,
}

/// Decodes a page of leases.
///
/// # Errors
/// When the body is anything but a complete LeaseList.
pub fn leases(content_type: &str, body: Bytes) -> Result<Page<LeaseRecord>, DecodeError> {
    let list: List<Lease> = decode("LeaseList", content_type, body)?;
    list.into_page(|lease| {
        let spec = lease.spec.unwrap_or_default();
        let name = lease.metadata.unwrap_or_default().name;
        let renew_time = match spec.renew_time {
            None => None,
            Some(RenewTime::Seconds(time)) => {
                let nanos = u32::try_from(time.nanos).ok();
                let stamp = nanos.and_then(|nanos| DateTime::from_timestamp(time.seconds, nanos));
                Some(stamp.ok_or_else(|| DecodeError::RenewTime(name.clone()))?)
            }
            Some(RenewTime::Text(time)) => Some(time),
        };
        Ok(LeaseRecord { name, renew_time, duration_seconds: spec.lease_duration_seconds })
    })
}

/// Decodes a page of nodes.
///
/// # Errors
/// When the body is anything but a complete NodeList page.
pub fn nodes(content_type: &str, body: Bytes) -> Result<Page<NodeRecord>, DecodeError> {
    let list: List<Node> = decode("NodeList", content_type, body)?;
    list.into_page(|node| {
        let metadata = node.metadata.unwrap_or_default();
        let conditions = node.status.unwrap_or_default().conditions;
        Ok(NodeRecord::new(
            metadata.name,
            |key| metadata.labels.get(key).map(String::as_str),
            |key| metadata.annotations.contains_key(key),
            conditions.into_iter().map(|c| NodeCondition { kind: c.kind, status: c.status, reason: c.reason }).collect(),
        ))
    })
}

fn decode<T: Item>(kind: &'static str, content_type: &str, body: Bytes) -> Result<List<T>, DecodeError> {
    let (found, list) = if content_type.starts_with("application/vnd.kubernetes.protobuf") {
        let mut rest = body;
        if !rest.starts_with(MAGIC) {
            return Err(DecodeError::Magic);
        }
        let unknown = Unknown::decode(rest.split_off(MAGIC.len()))?;
        let list = T::decode_list(unknown.raw)?;
        (unknown.type_meta.unwrap_or_default().kind, list)
    } else if content_type.starts_with("application/json") {
        let list: JsonList<T> = serde_json::from_slice(&body)?;
        (list.kind, List { metadata: list.metadata, items: list.items.unwrap_or_default() })
    } else {
        return Err(DecodeError::ContentType(content_type.chars().take(80).collect()));
    };
    if found != kind {
        return Err(DecodeError::Kind { expected: kind, found: found.chars().take(80).collect() });
    }
    Ok(list)
}

struct List<T> {
    metadata: ListMeta,
    items: Vec<T>,
}

impl<T> List<T> {
    fn into_page<R>(self, record: impl FnMut(T) -> Result<R, DecodeError>) -> Result<Page<R>, DecodeError> {
        if self.metadata.resource_version.is_empty() {
            return Err(DecodeError::NoResourceVersion);
        }
        let items = self.items.into_iter().map(record).collect::<Result<_, _>>()?;
        Ok(Page { items, next: Some(self.metadata.next).filter(|token| !token.is_empty()) })
    }
}

/// What a list can hold.
trait Item: for<'de> Deserialize<'de> {
    fn decode_list(raw: Bytes) -> Result<List<Self>, prost::DecodeError>;
}

impl Item for Lease {
    fn decode_list(raw: Bytes) -> Result<List<Self>, prost::DecodeError> {
        let list = ProtoLeaseList::decode(raw)?;
        let items = list.items.into_iter().map(Lease::from).collect();
        Ok(List { metadata: list.metadata.unwrap_or_default(), items })
    }
}

impl Item for Node {
    fn decode_list(raw: Bytes) -> Result<List<Self>, prost::DecodeError> {
        let list = ProtoNodeList::decode(raw)?;
        Ok(List { metadata: list.metadata.unwrap_or_default(), items: list.items })
    }
}

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "2")]
    kind: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct ListMeta {
    #[prost(string, tag = "2")]
    #[serde(rename = "resourceVersion")]
    resource_version: String,
    #[prost(string, tag = "3")]
    #[serde(rename = "continue")]
    next: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct ObjectMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(map = "string, string", tag = "11")]
    labels: HashMap<String, String>,
    #[prost(map = "string, string", tag = "12")]
    annotations: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoLeaseList {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(message, repeated, tag = "2")]
    items: Vec<ProtoLease>,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoLease {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectName>,
    #[prost(message, optional, tag = "2")]
    spec: Option<ProtoLeaseSpec>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct ObjectName {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoLeaseSpec {
    #[prost(int32, optional, tag = "2")]
    lease_duration_seconds: Option<i32>,
    #[prost(message, optional, tag = "4")]
    renew_time: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
struct ProtoNodeList {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ListMeta>,
    #[prost(message, repeated, tag = "2")]
    items: Vec<Node>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
struct Node {
    #[prost(message, optional, tag = "1")]
    metadata: Option<ObjectMeta>,
    #[prost(message, optional, tag = "3")]
    status: Option<NodeStatus>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
struct NodeStatus {
    #[prost(message, repeated, tag = "4")]
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
struct Condition {
    #[prost(string, tag = "1")]
    #[serde(rename = "type")]
    kind: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(string, tag = "5")]
    reason: String,
}

#[derive(Deserialize)]
#[serde(bound = "T: Item")]
struct JsonList<T> {
    kind: String,
    metadata: ListMeta,
    /// Go writes an empty list as null where it was never filled.
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
struct Lease {
    metadata: Option<ObjectName>,
    spec: Option<LeaseSpec>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    lease_duration_seconds: Option<i32>,
    renew_time: Option<RenewTime>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RenewTime {
    Text(DateTime<Utc>),
    #[serde(skip)]
    Seconds(Timestamp),
}

impl From<ProtoLease> for Lease {
    fn from(lease: ProtoLease) -> Self {
        let spec = lease.spec.map(|spec| LeaseSpec {
            lease_duration_seconds: spec.lease_duration_seconds,
            renew_time: spec.renew_time.map(RenewTime::Seconds),
        });
        Self { metadata: lease.metadata, spec }
    }
}

#[cfg(test)]
mod tests;
