//! Answers in protobuf, for the kinds that a probe lists.

mod messages;
pub mod wire;

use bytes::Bytes;
use serde_json::Value;

pub(crate) use self::wire::MEDIA_TYPE;
use self::wire::{bytes, envelope, push, varint};
use crate::resource::Resource;

/// Field 2 of every list kind holds its items.
const ITEMS: u64 = 2;

/// The message of a Lease.
pub fn lease(value: &Value) -> Bytes {
    encode("Lease", value)
}

/// The message of a Node.
pub fn node(value: &Value) -> Bytes {
    encode("Node", value)
}

/// Whether a resource has a protobuf form here.
pub(crate) fn speaks(resource: &Resource) -> bool {
    let name = resource.full_name();
    matches!(name.as_str(), "leases.coordination.k8s.io" | "nodes")
}

/// The message of one object of a kind that has one here, without envelope.
pub(crate) fn encode(kind: &str, value: &Value) -> Bytes {
    messages::encode(kind, value).into()
}

/// A whole response body with a list of messages.
pub(crate) fn list_body(
    resource: &Resource,
    metadata: &Value,
    items: impl IntoIterator<Item = Bytes>,
) -> Vec<u8> {
    let mut list = bytes(1, &encode("ListMeta", metadata));
    for item in items {
        push(&mut list, ITEMS, &item);
    }
    let kind = format!("{}List", resource.kind);
    envelope(&resource.api_version, &kind, &list)
}

/// Begins a response body with a field of so many bytes that nobody reads.
pub(crate) fn unread(bytes: usize) -> Bytes {
    let field = [varint(90 << 3 | 2), varint(bytes as u64)].concat();
    [wire::MAGIC, &field].concat().into()
}

/// A whole response body with an error.
pub(crate) fn status_body(status: &Value) -> Vec<u8> {
    envelope("v1", "Status", &encode("Status", status))
}
