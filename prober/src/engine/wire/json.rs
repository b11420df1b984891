//! Kubernetes' JSON, for a server that does not speak protobuf. Texts are borrowed from the body.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use chrono::{DateTime, Utc};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::{DecodeError, ListMeta, MAX_ITEMS, check_kind, room_for_names};
use crate::core::lease::{LeaseList, LeaseRecord};
use crate::core::verdict::{NodeCondition, NodeRecord};
use crate::gardener::object::Object;

/// Where the body is no JSON, or not the JSON that was expected. The parser's own words are not kept: they repeat what was
/// found, at any length.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{what} at line {line}, column {column}")]
pub struct Broken {
    what: &'static str,
    line: usize,
    column: usize,
}

impl From<serde_json::Error> for Broken {
    fn from(error: serde_json::Error) -> Self {
        let what = match error.classify() {
            Category::Io => "it cannot be read",
            Category::Syntax => "it is no JSON",
            Category::Data => "a value is of the wrong type, or missing",
            Category::Eof => "it ends too early",
        };
        Self { what, line: error.line(), column: error.column() }
    }
}

/// Reads a LeaseList.
pub fn leases(expected: &'static str, body: &[u8], leases: &mut LeaseList) -> Result<ListMeta, DecodeError> {
    let (metadata, items) = list::<Lease<'_>>(expected, body)?;
    let first = items.first().map_or("", |Object(lease)| lease.name());
    leases.reserve(items.len(), room_for_names(items.len(), first, body));
    leases.extend(items.iter().map(|Object(lease)| {
        let Object(LeaseSpec { renew_time, lease_duration_seconds }) = lease.spec.unwrap_or_default();
        LeaseRecord { name: lease.name(), uid: lease.uid().into(), renew_time, duration_seconds: lease_duration_seconds }
    }));
    Ok(metadata)
}

/// Reads a NodeList.
pub fn nodes(expected: &'static str, body: &[u8], nodes: &mut Vec<NodeRecord>) -> Result<ListMeta, DecodeError> {
    let (metadata, items) = list::<Node<'_>>(expected, body)?;
    nodes.extend(items.into_iter().map(|Object(node)| {
        let Object(ObjectMeta { name, labels, annotations }) = node.metadata.unwrap_or_default();
        let mut record = NodeRecord { name: name.into_owned(), ..NodeRecord::default() };
        labels.iter().for_each(|(key, value)| record.note_label(key, value));
        annotations.keys().for_each(|key| record.note_annotation(key));
        let Object(NodeStatus { conditions }) = node.status.unwrap_or_default();
        for Object(Condition { kind, status, reason }) in &conditions {
            record.note_condition(NodeCondition { kind, status, reason });
        }
        record
    }));
    Ok(metadata)
}

fn list<'a, T: Deserialize<'a>>(expected: &'static str, body: &'a [u8]) -> Result<(ListMeta, Vec<Object<T>>), DecodeError> {
    let Object(List { kind, metadata: Object(metadata), items }) = serde_json::from_slice(body).map_err(Broken::from)?;
    check_kind(expected, &kind)?;
    let Items(items) = items.unwrap_or_default();
    if items.len() > MAX_ITEMS { Err(DecodeError::TooManyItems) } else { Ok((metadata, items)) }
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct List<'a, T> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    metadata: Object<ListMeta>,
    /// Go writes an empty list as null where it was never filled.
    items: Option<Items<T>>,
}

/// Items up to one more than there may be; those behind it are read and not kept.
struct Items<T>(Vec<Object<T>>);

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor(PhantomData))
    }
}

struct ItemsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ItemsVisitor<T> {
    type Value = Items<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Items<T>, A::Error> {
        let mut items = Vec::new();
        while items.len() <= MAX_ITEMS {
            match sequence.next_element()? {
                Some(item) => items.push(item),
                None => return Ok(Items(items)),
            }
        }
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Items(items))
    }
}

#[derive(Deserialize)]
struct Lease<'a> {
    #[serde(borrow)]
    metadata: Option<Object<LeaseMeta<'a>>>,
    spec: Option<Object<LeaseSpec>>,
}

impl Lease<'_> {
    fn name(&self) -> &str {
        self.metadata.as_ref().map_or("", |Object(metadata)| &metadata.name)
    }

    fn uid(&self) -> &str {
        self.metadata.as_ref().map_or("", |Object(metadata)| &metadata.uid)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LeaseMeta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    lease_duration_seconds: Option<i32>,
    renew_time: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct Node<'a> {
    #[serde(borrow)]
    metadata: Option<Object<ObjectMeta<'a>>>,
    #[serde(borrow)]
    status: Option<Object<NodeStatus<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectMeta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    labels: HashMap<String, String>,
    annotations: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatus<'a> {
    #[serde(borrow)]
    conditions: Vec<Object<Condition<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    reason: Cow<'a, str>,
}
