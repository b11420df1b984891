//! Kubernetes' JSON, for a server that does not speak protobuf. Texts are borrowed from the body.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use chrono::{DateTime, Utc};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::{DecodeError, Kept, ListMeta, MAX_ITEMS, check_count, check_kind, room_for_names};
use crate::core::lease::{LeaseList, LeaseRecord};
use crate::core::verdict::{NodeCondition, NodeRecord};
use crate::gardener::object::{Object, object_or_default};

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
            // Nothing is read here but what is in memory.
            Category::Io | Category::Syntax => "it is no JSON",
            Category::Data => "a value is of the wrong type, or missing",
            Category::Eof => "it ends too early",
        };
        Self { what, line: error.line(), column: error.column() }
    }
}

pub fn leases(expected: &'static str, body: &[u8], leases: &mut LeaseList) -> Result<ListMeta, DecodeError> {
    let (metadata, items) = list::<Lease<'_>>(expected, body)?;
    check_count(leases.len(), items.len())?;
    let first = items.first().map_or("", |lease| &lease.metadata.name);
    leases.reserve(items.len(), room_for_names(items.len(), first, body));
    for Lease { metadata: LeaseMeta { name, uid }, spec } in &items {
        let LeaseSpec { lease_duration_seconds: duration_seconds, renew_time } = *spec;
        leases.push(LeaseRecord { name, uid: (&**uid).into(), renew_time, duration_seconds });
    }
    Ok(metadata)
}

pub fn nodes(expected: &'static str, body: &[u8], nodes: &mut Vec<NodeRecord>) -> Result<ListMeta, DecodeError> {
    let (metadata, items) = list::<Node<'_>>(expected, body)?;
    check_count(nodes.len(), items.len())?;
    let mut kept = Kept::new(nodes);
    for Node { metadata: NodeMeta { name, labelled, not_managed_by_mcm }, status } in items {
        kept.push(NodeRecord { name: name.into_owned(), not_managed_by_mcm, conditions: status.conditions, ..labelled })?;
    }
    Ok(metadata)
}

fn list<'a, T: Deserialize<'a>>(expected: &'static str, body: &'a [u8]) -> Result<(ListMeta, Vec<T>), DecodeError> {
    let Object(List { kind, metadata: Object(metadata), items }) = serde_json::from_slice(body).map_err(Broken::from)?;
    check_kind(expected, &kind)?;
    Ok((metadata, items))
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct List<'a, T> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    metadata: Object<ListMeta>,
    #[serde(default = "Vec::new", deserialize_with = "items")]
    items: Vec<T>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Lease<'a> {
    #[serde(borrow, deserialize_with = "object_or_default")]
    metadata: LeaseMeta<'a>,
    #[serde(deserialize_with = "object_or_default")]
    spec: LeaseSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LeaseMeta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    lease_duration_seconds: Option<i32>,
    renew_time: Option<DateTime<Utc>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Node<'a> {
    #[serde(borrow, deserialize_with = "object_or_default")]
    metadata: NodeMeta<'a>,
    #[serde(deserialize_with = "object_or_default")]
    status: NodeStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeMeta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    /// A node of which only the labels are known.
    #[serde(rename = "labels", deserialize_with = "labelled")]
    labelled: NodeRecord,
    #[serde(rename = "annotations", deserialize_with = "not_managed_by_mcm")]
    not_managed_by_mcm: bool,
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

/// Items up to one more than there may be. Go writes an empty list as null where it was never filled.
fn items<'de, D: Deserializer<'de>, T: Deserialize<'de>>(items: D) -> Result<Vec<T>, D::Error> {
    let mut kept = Vec::new();
    let keep = |Object(item)| {
        if kept.len() <= MAX_ITEMS {
            kept.push(item);
        }
    };
    items.deserialize_any(Items(keep, PhantomData))?;
    Ok(kept)
}

fn conditions<'de, D: Deserializer<'de>>(conditions: D) -> Result<Vec<NodeCondition>, D::Error> {
    let mut node = NodeRecord::default();
    let note = |Object(Condition { kind, status, reason })| {
        node.note_condition(NodeCondition { kind: &kind, status: &status, reason: &reason });
    };
    conditions.deserialize_seq(Items(note, PhantomData))?;
    Ok(node.conditions)
}

fn labelled<'de, D: Deserializer<'de>>(labels: D) -> Result<NodeRecord, D::Error> {
    let mut node = NodeRecord::default();
    labels.deserialize_map(Entries(|key: &str, value: &str| node.note_label(key, value)))?;
    Ok(node)
}

fn not_managed_by_mcm<'de, D: Deserializer<'de>>(annotations: D) -> Result<bool, D::Error> {
    let mut node = NodeRecord::default();
    annotations.deserialize_map(Entries(|key: &str, _: &str| node.note_annotation(key)))?;
    Ok(node.not_managed_by_mcm)
}

/// Hands over the items of a list, or none of a null, one by one: there may be any number of them.
struct Items<F, T>(F, PhantomData<T>);

impl<'de, F: FnMut(T), T: Deserialize<'de>> Visitor<'de> for Items<F, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            (self.0)(item);
        }
        Ok(())
    }
}

/// Hands over the entries of a map of texts one by one: there may be any number of them.
struct Entries<F>(F);

impl<'de, F: FnMut(&str, &str)> Visitor<'de> for Entries<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of texts")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        while let Some((key, value)) = entries.next_entry::<String, String>()? {
            (self.0)(&key, &value);
        }
        Ok(())
    }
}
