//! Answers in protobuf, for the kinds that a probe lists.

mod messages;
pub mod wire;

use bytes::Bytes;
use kube::core::Status;
use serde_json::Value;

pub(crate) use self::wire::MEDIA_TYPE;
use self::wire::{envelope, number, push, text};
use crate::api::{resource::Resource, status};

/// Field 2 of every list kind holds its items.
const ITEMS: u64 = 2;

fn message_of(resource: &Resource) -> Option<fn(&Value) -> Vec<u8>> {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("coordination.k8s.io", "Lease") => Some(messages::lease),
        ("", "Node") => Some(messages::node),
        _ => None,
    }
}

/// The message of a Lease.
pub fn lease(value: &Value) -> Bytes {
    messages::lease(value).into()
}

/// The message of a Node.
pub fn node(value: &Value) -> Bytes {
    messages::node(value).into()
}

/// Whether a resource has a protobuf form here.
pub(crate) fn speaks(resource: &Resource) -> bool {
    message_of(resource).is_some()
}

/// The message of one object, without envelope.
pub(crate) fn encode_object(resource: &Resource, value: &Value) -> Option<Bytes> {
    Some(message_of(resource)?(value).into())
}

/// A whole response body with one object, of which this is the message.
pub(crate) fn object_body(resource: &Resource, message: &[u8]) -> Bytes {
    envelope(&resource.api_version(), &resource.kind, message).into()
}

/// A whole response body with a list of messages; `rest` is the token and how many objects are left
/// behind it.
pub(crate) fn list_body(
    resource: &Resource,
    revision: u64,
    rest: Option<(&str, usize)>,
    items: &[Bytes],
) -> Bytes {
    let mut list = Vec::with_capacity(128 + items.iter().map(|item| item.len() + 6).sum::<usize>());
    let mut metadata = [
        text(2, &revision.to_string()),
        text(3, rest.map_or("", |(token, _)| token)),
    ]
    .concat();
    if let Some((_, left)) = rest {
        metadata.extend(number(4, left as i64));
    }
    push(&mut list, 1, &metadata);
    items.iter().for_each(|item| push(&mut list, ITEMS, item));
    envelope(
        &resource.api_version(),
        &format!("{}List", resource.kind),
        &list,
    )
    .into()
}

/// A whole response body with an error.
pub(crate) fn status_body(error: &Status) -> Bytes {
    envelope("v1", "Status", &messages::status(&status::body(error))).into()
}
