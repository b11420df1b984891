//! Lists in Kubernetes' JSON, for a server that does not speak protobuf.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::{DecodeError, ItemList, ListMeta, check_count, check_kind};
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

pub(crate) fn read_list<L: ItemList>(body: &[u8], list: &mut L) -> Result<ListMeta, DecodeError> {
    let JsonObject(page): JsonObject<JsonList<'_, L>> =
        serde_json::from_slice(body).map_err(JsonError::from)?;
    if let Some(refusal) = page.items.refusal {
        return Err(refusal);
    }
    check_kind(L::KIND, &page.kind)?;
    check_count(list.count() + page.items.kept.count())?;
    list.append(page.items.kept)?;
    Ok(page.metadata.0)
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "L: JsonItems<'de>"))]
struct JsonList<'a, L> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    metadata: JsonObject<ListMeta>,
    #[serde(default)]
    items: JsonArray<L>,
}

/// Keeps what matters of each item of an array.
pub trait JsonItems<'de>: Default {
    type Item: Deserialize<'de>;

    fn keep(&mut self, item: Self::Item) -> Result<(), DecodeError>;
}

/// An array, read item by item: there may be any number of them. Go writes an empty list as null if
/// it was never filled.
#[derive(Default)]
pub(crate) struct JsonArray<L> {
    pub kept: L,
    /// Why no more is kept.
    refusal: Option<DecodeError>,
}

impl<'de, L: JsonItems<'de>> Deserialize<'de> for JsonArray<L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self::default())
    }
}

impl<'de, L: JsonItems<'de>> Visitor<'de> for JsonArray<L> {
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

/// What is read of an object's metadata.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct JsonMetadata<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "object_or_default")]
    pub labels: NodeLabels<'a>,
    #[serde(deserialize_with = "object_or_default")]
    pub annotations: NodeAnnotations,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct NodeLabels<'a> {
    #[serde(rename = "worker.gardener.cloud/pool")]
    pub pool: Option<String>,
    #[serde(rename = "topology.kubernetes.io/zone", borrow)]
    pub zone: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct NodeAnnotations {
    #[serde(rename = "node.machine.sapcloud.io/not-managed-by-mcm")]
    pub not_managed_by_mcm: Option<IgnoredAny>,
}
