//! Answers in protobuf, for the kinds that a probe lists.

mod messages;
pub mod wire;

use bytes::Bytes;
use kube_core::Status;
use serde_json::Value;

pub(crate) use self::wire::MEDIA_TYPE;
use self::wire::{envelope, number, push, text, varint};
use crate::{list_page::ListPage, resource::Resource, status};

/// Field 2 of every list kind holds its items.
const ITEMS: u64 = 2;

/// The message of a Lease.
pub fn lease(value: &Value) -> Bytes {
    messages::encode("Lease", value).into()
}

/// The message of a Node.
pub fn node(value: &Value) -> Bytes {
    messages::encode("Node", value).into()
}

/// Whether a resource has a protobuf form here.
pub(crate) fn speaks(resource: &Resource) -> bool {
    let kind = (resource.group.as_str(), resource.kind.as_str());
    matches!(kind, ("coordination.k8s.io", "Lease") | ("", "Node"))
}

/// The message of one object, without envelope.
pub(crate) fn encode_object(resource: &Resource, value: &Value) -> Bytes {
    messages::encode(&resource.kind, value).into()
}

/// A whole response body with a list of messages.
pub(crate) fn list_body(resource: &Resource, page: &ListPage<Bytes>) -> Bytes {
    let size: usize = page.items.iter().map(|item| item.len() + 6).sum();
    let mut list = Vec::with_capacity(128 + size);
    let mut metadata = text(2, &page.revision.to_string());
    match &page.rest {
        Some((token, left)) => {
            metadata.extend([text(3, token), number(4, *left as i64)].concat());
        }
        None => metadata.extend(text(3, "")),
    }
    push(&mut list, 1, &metadata);
    page.items
        .iter()
        .for_each(|item| push(&mut list, ITEMS, item));
    let kind = format!("{}List", resource.kind);
    envelope(&resource.api_version(), &kind, &list).into()
}

/// Begins a response body with a field of so many bytes that nobody reads.
pub fn unread(bytes: usize) -> Bytes {
    [wire::MAGIC, &varint(90 << 3 | 2), &varint(bytes as u64)]
        .concat()
        .into()
}

/// A whole response body with an error.
pub(crate) fn status_body(error: &Status) -> Bytes {
    let message = messages::encode("Status", &status::body(error));
    envelope("v1", "Status", &message).into()
}
