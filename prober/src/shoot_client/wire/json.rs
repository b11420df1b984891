//! Kubernetes' JSON, for a server that does not speak protobuf. Texts are borrowed from the body.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use chrono::{DateTime, Utc};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::{DecodeError, ListMeta, MAX_ITEMS, Room, check_count, check_kind, room_for_names};
use crate::core::lease::{LeaseList, LeaseRecord};
use crate::core::verdict::{NodeCondition, NodeRecord};
use crate::gardener::object::Object;

/// Where the body is no JSON, or not the JSON that was expected. The parser's own words are not kept: they repeat what was found, at any
/// length.
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

pub fn leases(expected: &'static str, body: &[u8], leases: &mut LeaseList) -> Result<ListMeta, DecodeError> {
    let (metadata, items) = list::<Lease<'_>>(expected, body)?;
    check_count(leases.len(), items.len())?;
    let first = items.first().map_or("", |Object(lease)| lease.name());
    leases.reserve(items.len(), room_for_names(items.len(), first, body));
    leases.extend(items.iter().map(|Object(lease)| {
        let Object(LeaseSpec { renew_time, lease_duration_seconds }) = lease.spec.unwrap_or_default();
        LeaseRecord { name: lease.name(), uid: lease.uid().into(), renew_time, duration_seconds: lease_duration_seconds }
    }));
    Ok(metadata)
}

pub fn nodes(expected: &'static str, body: &[u8], nodes: &mut Vec<NodeRecord>) -> Result<ListMeta, DecodeError> {
    let (metadata, items) = list::<Node<'_>>(expected, body)?;
    check_count(nodes.len(), items.len())?;
    let mut room = Room::beside(nodes);
    for Object(node) in items {
        let Object(ObjectMeta { name, labels: pool, annotations: not_managed_by_mcm }) = node.metadata.unwrap_or_default();
        let Object(NodeStatus { conditions }) = node.status.unwrap_or_default();
        let node = NodeRecord { name: name.into_owned(), pool, not_managed_by_mcm, conditions };
        room.take(&node)?;
        nodes.push(node);
    }
    Ok(metadata)
}

fn list<'a, T: Deserialize<'a>>(expected: &'static str, body: &'a [u8]) -> Result<(ListMeta, Vec<Object<T>>), DecodeError> {
    let Object(List { kind, metadata: Object(metadata), items }) = serde_json::from_slice(body).map_err(Broken::from)?;
    check_kind(expected, &kind)?;
    let Items(items) = items.unwrap_or_default();
    Ok((metadata, items))
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
    status: Option<Object<NodeStatus>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectMeta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(deserialize_with = "pool")]
    labels: Option<String>,
    #[serde(deserialize_with = "not_managed_by_mcm")]
    annotations: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    #[serde(deserialize_with = "conditions")]
    conditions: Vec<NodeCondition>,
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

/// Notes what matters of a node entry by entry, and keeps nothing of the others: there may be any number of them.
struct Noting<F>(NodeRecord, F);

fn pool<'de, D: Deserializer<'de>>(labels: D) -> Result<Option<String>, D::Error> {
    Ok(labels.deserialize_map(Noting(NodeRecord::default(), NodeRecord::note_label))?.pool)
}

fn not_managed_by_mcm<'de, D: Deserializer<'de>>(annotations: D) -> Result<bool, D::Error> {
    let note = |node: &mut NodeRecord, key: &str, _: &str| node.note_annotation(key);
    Ok(annotations.deserialize_map(Noting(NodeRecord::default(), note))?.not_managed_by_mcm)
}

fn conditions<'de, D: Deserializer<'de>>(conditions: D) -> Result<Vec<NodeCondition>, D::Error> {
    Ok(conditions.deserialize_seq(NotingConditions)?.conditions)
}

impl<'de, F: FnMut(&mut NodeRecord, &str, &str)> Visitor<'de> for Noting<F> {
    type Value = NodeRecord;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of texts")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<NodeRecord, A::Error> {
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            (self.1)(&mut self.0, &key, &value);
        }
        Ok(self.0)
    }
}

struct NotingConditions;

impl<'de> Visitor<'de> for NotingConditions {
    type Value = NodeRecord;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<NodeRecord, A::Error> {
        let mut node = NodeRecord::default();
        while let Some(Object(Condition { kind, status, reason })) = sequence.next_element::<Object<Condition<'de>>>()? {
            node.note_condition(NodeCondition { kind: &kind, status: &status, reason: &reason });
        }
        Ok(node)
    }
}
