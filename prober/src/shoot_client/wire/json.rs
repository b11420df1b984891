//! Kubernetes' JSON, for a server that does not speak protobuf. Texts are borrowed from the body.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use chrono::{DateTime, Utc};
use prober_core::lease::{LeaseList, LeaseRecord};
use prober_core::verdict::{NodeCondition, NodeRecord};
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::{DecodeError, Kept, ListMeta, check_count, check_kind, room_for_names};
use crate::gardener::object::{Object, object_or_default};

/// Where the body is no JSON, or not the JSON that was expected. The parser's own words are not
/// kept: they repeat what was found, at any length.
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
    let mut items = Vec::new();
    let metadata = list(expected, body, |lease: Lease<'_>| {
        items.push(lease);
        check_count(leases.len(), items.len())
    })?;
    let first = items.first().map_or("", |lease| &lease.metadata.name);
    leases.reserve(items.len(), room_for_names(items.len(), first, body));
    for Lease {
        metadata: LeaseMeta { name, uid },
        spec,
    } in &items
    {
        let LeaseSpec {
            lease_duration_seconds: duration_seconds,
            renew_time,
        } = *spec;
        leases.push(LeaseRecord {
            name,
            uid: (&**uid).into(),
            renew_time,
            duration_seconds,
        });
    }
    Ok(metadata)
}

pub fn nodes(
    expected: &'static str,
    body: &[u8],
    nodes: &mut Vec<NodeRecord>,
) -> Result<ListMeta, DecodeError> {
    let mut count = nodes.len();
    let mut kept = Kept::new(nodes);
    list(
        expected,
        body,
        |Node {
             metadata:
                 NodeMeta {
                     name,
                     labelled,
                     not_managed_by_mcm,
                 },
             status,
         }: Node<'_>| {
            count += 1;
            check_count(count, 0)?;
            kept.push(NodeRecord {
                name: name.into_owned(),
                not_managed_by_mcm,
                conditions: status.conditions,
                ..labelled
            })
        },
    )
}

/// Hands over the items of a list one by one, so that no more of them are kept than may be: until
/// one is refused.
fn list<'a, T: Deserialize<'a>>(
    expected: &'static str,
    body: &'a [u8],
    mut take: impl FnMut(T) -> Result<(), DecodeError>,
) -> Result<ListMeta, DecodeError> {
    let mut refused = None;
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let take = |Object(item)| take(item).map_err(|error| refused = Some(error)).is_ok();
    let read = deserializer
        .deserialize_map(ListVisitor(take, PhantomData))
        .and_then(|list| deserializer.end().map(|()| list));
    if let Some(refused) = refused {
        return Err(refused);
    }
    let (kind, metadata) = read.map_err(Broken::from)?;
    check_kind(expected, &kind)?;
    Ok(metadata)
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum ListField {
    Kind,
    Metadata,
    Items,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Of a list gives kind and metadata, and hands over the items.
struct ListVisitor<F, T>(F, PhantomData<T>);

impl<'de, F: FnMut(Object<T>) -> bool, T: Deserialize<'de>> Visitor<'de> for ListVisitor<F, T> {
    type Value = (Cow<'de, str>, ListMeta);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut metadata, mut items) = (None, None, None);
        while let Some(field) = fields.next_key()? {
            let is_repeated = match field {
                ListField::Kind => kind.replace(fields.next_value::<Text<'_>>()?.0).is_some(),
                ListField::Metadata => metadata
                    .replace(fields.next_value::<Object<ListMeta>>()?.0)
                    .is_some(),
                ListField::Items => items
                    .replace(fields.next_value_seed(Items(&mut self.0, PhantomData))?)
                    .is_some(),
                ListField::Other => fields.next_value::<IgnoredAny>().map(|_| false)?,
            };
            if is_repeated {
                return Err(A::Error::custom("a field comes twice"));
            }
        }
        Ok((
            kind.ok_or_else(|| A::Error::missing_field("kind"))?,
            metadata.ok_or_else(|| A::Error::missing_field("metadata"))?,
        ))
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

fn conditions<'de, D: Deserializer<'de>>(conditions: D) -> Result<Vec<NodeCondition>, D::Error> {
    let mut node = NodeRecord::default();
    let note = |Object(Condition {
                    kind,
                    status,
                    reason,
                })| {
        node.note_condition(NodeCondition {
            kind: &kind,
            status: &status,
            reason: &reason,
        });
        true
    };
    conditions.deserialize_seq(Items(note, PhantomData))?;
    Ok(node.conditions)
}

fn labelled<'de, D: Deserializer<'de>>(labels: D) -> Result<NodeRecord, D::Error> {
    let mut node = NodeRecord::default();
    labels.deserialize_map(Entries(|key: &str, value: &str| {
        node.note_label(key, value)
    }))?;
    Ok(node)
}

fn not_managed_by_mcm<'de, D: Deserializer<'de>>(annotations: D) -> Result<bool, D::Error> {
    let mut node = NodeRecord::default();
    annotations.deserialize_map(Entries(|key: &str, _: &str| node.note_annotation(key)))?;
    Ok(node.not_managed_by_mcm)
}

/// Hands over the items of a list one by one, until one is not taken: there may be any number of
/// them. Go writes an empty list as null where it was never filled.
struct Items<F, T>(F, PhantomData<T>);

impl<'de, F: FnMut(T) -> bool, T: Deserialize<'de>> DeserializeSeed<'de> for Items<F, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, items: D) -> Result<(), D::Error> {
        items.deserialize_any(self)
    }
}

impl<'de, F: FnMut(T) -> bool, T: Deserialize<'de>> Visitor<'de> for Items<F, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            if !(self.0)(item) {
                return Err(A::Error::custom("an item is refused"));
            }
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
