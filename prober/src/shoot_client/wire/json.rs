//! Kubernetes' JSON, for a server that does not speak protobuf. Texts are borrowed from the body.

use std::borrow::Cow;
use std::fmt;

use chrono::{DateTime, Utc};
use prober_core::lease::{LeaseList, LeaseRecord};
use prober_core::verdict::{NodeCondition, NodeRecord};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::{DecodeError, KeptNodes, ListMeta, check_count, check_kind};
use crate::gardener::object::{JsonObject, object_or_default};

/// Where the body is no JSON, or not the JSON that was expected. The parser's own words are not
/// kept: they repeat what was found, at any length.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{what} at line {line}, column {column}")]
pub struct JsonError {
    what: &'static str,
    line: usize,
    column: usize,
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        let what = match error.classify() {
            // Nothing is read here but what is in memory.
            Category::Io | Category::Syntax => "it is no JSON",
            Category::Data => "a value is of the wrong type, or missing",
            Category::Eof => "it ends too early",
        };
        Self {
            what,
            line: error.line(),
            column: error.column(),
        }
    }
}

pub fn leases(
    expected: &'static str,
    body: &[u8],
    leases: &mut LeaseList,
) -> Result<ListMeta, DecodeError> {
    let (metadata, page) = list::<LeaseList>(expected, body)?;
    check_count(leases.len() + page.len())?;
    for lease in page.iter() {
        leases.push(lease);
    }
    Ok(metadata)
}

pub fn nodes(
    expected: &'static str,
    body: &[u8],
    nodes: &mut KeptNodes,
) -> Result<ListMeta, DecodeError> {
    let (metadata, page) = list::<KeptNodes>(expected, body)?;
    for node in page.nodes {
        nodes.push(node)?;
    }
    Ok(metadata)
}

fn list<'a, C: Keep<'a>>(
    expected: &'static str,
    body: &'a [u8],
) -> Result<(ListMeta, C), DecodeError> {
    let JsonObject(list) =
        serde_json::from_slice::<JsonObject<List<'_, C>>>(body).map_err(JsonError::from)?;
    if let Some(refusal) = list.items.refusal {
        return Err(refusal);
    }
    check_kind(expected, &list.kind)?;
    Ok((list.metadata.0, list.items.kept))
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "C: Keep<'de>"))]
struct List<'a, C> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    metadata: JsonObject<ListMeta>,
    #[serde(default)]
    items: Items<C>,
}

/// The items of a JSON array, read one by one: there may be any number of them. Go writes an empty
/// list as null if it was never filled.
#[derive(Default)]
struct Items<C> {
    kept: C,
    /// Why no more of them are kept.
    refusal: Option<DecodeError>,
}

/// Keeps what matters of each item.
trait Keep<'de>: Default {
    type Item: Deserialize<'de>;

    fn keep(&mut self, item: Self::Item) -> Result<(), DecodeError>;
}

impl<'de, C: Keep<'de>> Deserialize<'de> for Items<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self::default())
    }
}

impl<'de, C: Keep<'de>> Visitor<'de> for Items<C> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self, A::Error> {
        while self.refusal.is_none()
            && let Some(JsonObject(item)) = items.next_element()?
        {
            self.refusal = self.kept.keep(item).err();
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self)
    }
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

impl<'de> Keep<'de> for LeaseList {
    type Item = Lease<'de>;

    fn keep(&mut self, Lease { metadata, spec }: Lease<'de>) -> Result<(), DecodeError> {
        check_count(self.len() + 1)?;
        self.push(LeaseRecord {
            name: &metadata.name,
            uid: (&*metadata.uid).into(),
            renew_time: spec.renew_time,
            duration_seconds: spec.lease_duration_seconds,
        });
        Ok(())
    }
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
    #[serde(rename = "annotations", deserialize_with = "annotated")]
    annotated: NodeRecord,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    conditions: Items<NodeRecord>,
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

impl<'de> Keep<'de> for KeptNodes {
    type Item = Node<'de>;

    fn keep(&mut self, Node { metadata, status }: Node<'de>) -> Result<(), DecodeError> {
        self.push(NodeRecord {
            name: metadata.name.into_owned(),
            not_managed_by_mcm: metadata.annotated.not_managed_by_mcm,
            conditions: status.conditions.kept.conditions,
            ..metadata.labelled
        })
    }
}

/// Keeps conditions in a node of which nothing else is known.
impl<'de> Keep<'de> for NodeRecord {
    type Item = Condition<'de>;

    fn keep(&mut self, condition: Condition<'de>) -> Result<(), DecodeError> {
        self.note_condition(NodeCondition {
            kind: &condition.kind,
            status: &condition.status,
            reason: &condition.reason,
        });
        Ok(())
    }
}

fn labelled<'de, D: Deserializer<'de>>(labels: D) -> Result<NodeRecord, D::Error> {
    labels.deserialize_map(Entries(|node: &mut NodeRecord, key, value| {
        node.note_label(key, value);
    }))
}

fn annotated<'de, D: Deserializer<'de>>(annotations: D) -> Result<NodeRecord, D::Error> {
    annotations.deserialize_map(Entries(|node: &mut NodeRecord, key, _| {
        node.note_annotation(key);
    }))
}

/// The entries of an object of texts, noted one by one: there may be any number of them.
struct Entries(fn(&mut NodeRecord, &str, &str));

impl<'de> Visitor<'de> for Entries {
    type Value = NodeRecord;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<NodeRecord, A::Error> {
        let mut node = NodeRecord::default();
        while let Some((key, value)) = entries.next_entry::<String, String>()? {
            (self.0)(&mut node, &key, &value);
        }
        Ok(node)
    }
}
