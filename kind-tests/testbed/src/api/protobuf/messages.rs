//! The messages of the kinds that a probe lists: a table for each says under which number of
//! Kubernetes' `generated.proto` files the fields of the JSON form are.

use chrono::DateTime;
use serde_json::{Map, Value, json};

use super::wire::{bytes, entry, message, number, text, time};

/// How a field is written. What has another form in the JSON is left out; of a list each item is
/// written.
enum Form {
    Text,
    /// A text that Go writes also when it is empty or not there.
    PlainText,
    /// All are an int32 or, as far as they are used here, small enough for one; a boolean is 0 or
    /// 1.
    Number,
    Time,
    Texts,
    /// A message that holds any JSON as its text.
    Json,
    Message(Fields),
}

type Fields = &'static [(u64, &'static str, Form)];

const METADATA: Fields = &[
    (1, "name", Form::PlainText),
    (2, "generateName", Form::PlainText),
    (3, "namespace", Form::PlainText),
    (4, "selfLink", Form::PlainText),
    (5, "uid", Form::PlainText),
    (6, "resourceVersion", Form::PlainText),
    (7, "generation", Form::Number),
    (8, "creationTimestamp", Form::Time),
    (9, "deletionTimestamp", Form::Time),
    (11, "labels", Form::Texts),
    (12, "annotations", Form::Texts),
    (13, "ownerReferences", Form::Message(OWNER_REFERENCE)),
    (14, "finalizers", Form::Text),
    (17, "managedFields", Form::Message(MANAGED_FIELDS)),
];
const OWNER_REFERENCE: Fields = &[
    (1, "kind", Form::Text),
    (3, "name", Form::Text),
    (4, "uid", Form::Text),
    (5, "apiVersion", Form::Text),
];
const MANAGED_FIELDS: Fields = &[
    (1, "manager", Form::Text),
    (2, "operation", Form::Text),
    (3, "apiVersion", Form::Text),
    (4, "time", Form::Time),
    (6, "fieldsType", Form::Text),
    (7, "fieldsV1", Form::Json),
    (8, "subresource", Form::PlainText),
];
const LEASE: Fields = &[
    (1, "metadata", Form::Message(METADATA)),
    (2, "spec", Form::Message(LEASE_SPEC)),
];
const LEASE_SPEC: Fields = &[
    (1, "holderIdentity", Form::Text),
    (2, "leaseDurationSeconds", Form::Number),
    (3, "acquireTime", Form::Time),
    (4, "renewTime", Form::Time),
    (5, "leaseTransitions", Form::Number),
];
const NODE: Fields = &[
    (1, "metadata", Form::Message(METADATA)),
    (
        2,
        "spec",
        Form::Message(&[
            (1, "podCIDR", Form::Text),
            (3, "providerID", Form::Text),
            (4, "unschedulable", Form::Number),
        ]),
    ),
    (3, "status", Form::Message(NODE_STATUS)),
];
const NODE_STATUS: Fields = &[
    (4, "conditions", Form::Message(NODE_CONDITION)),
    (
        5,
        "addresses",
        Form::Message(&[(1, "type", Form::Text), (2, "address", Form::Text)]),
    ),
    (
        8,
        "images",
        Form::Message(&[(1, "names", Form::Text), (2, "sizeBytes", Form::Number)]),
    ),
];
const NODE_CONDITION: Fields = &[
    (1, "type", Form::Text),
    (2, "status", Form::Text),
    (3, "lastHeartbeatTime", Form::Time),
    (4, "lastTransitionTime", Form::Time),
    (5, "reason", Form::Text),
    (6, "message", Form::Text),
];
const STATUS: Fields = &[
    (1, "metadata", Form::Message(&[])),
    (2, "status", Form::Text),
    (3, "message", Form::Text),
    (4, "reason", Form::Text),
    (5, "details", Form::Message(STATUS_DETAILS)),
    (6, "code", Form::Number),
];
const STATUS_DETAILS: Fields = &[
    (1, "name", Form::Text),
    (2, "group", Form::Text),
    (3, "kind", Form::Text),
    (5, "retryAfterSeconds", Form::Number),
];

/// A Lease.
pub fn lease(value: &Value) -> Vec<u8> {
    encode(LEASE, value)
}

/// A Node.
pub fn node(value: &Value) -> Vec<u8> {
    encode(NODE, value)
}

/// A Status.
pub fn status(value: &Value) -> Vec<u8> {
    encode(STATUS, value)
}

fn encode(fields: Fields, object: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, name, form) in fields {
        match &object[*name] {
            Value::Array(items) => out.extend(
                items
                    .iter()
                    .filter_map(|item| form.encode(*field, item))
                    .flatten(),
            ),
            value => out.extend(form.encode(*field, value).unwrap_or_default()),
        }
    }
    out
}

impl Form {
    fn encode(&self, field: u64, value: &Value) -> Option<Vec<u8>> {
        Some(match self {
            Self::Text => text(field, value.as_str()?),
            Self::PlainText => text(field, value.as_str().unwrap_or_default()),
            Self::Number => number(field, number_of(value)?),
            Self::Time => time(field, DateTime::parse_from_rfc3339(value.as_str()?).ok()?),
            Self::Texts => texts(field, value.as_object()?),
            Self::Json => message(field, &[text(1, &json!(value.as_object()?).to_string())]),
            Self::Message(fields) => {
                bytes(field, &encode(fields, value.is_object().then_some(value)?))
            }
        })
    }
}

fn number_of(value: &Value) -> Option<i64> {
    let number = value.as_i64().or(value.as_bool().map(i64::from))?;
    i32::try_from(number).ok().map(i64::from)
}

fn texts(field: u64, entries: &Map<String, Value>) -> Vec<u8> {
    entries
        .iter()
        .flat_map(|(key, value)| entry(field, key, value.as_str().unwrap_or_default()))
        .collect()
}
