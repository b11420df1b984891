//! A Node on the wire.

use std::borrow::Cow;

use prober_core::verdict::{NodeCondition, NodeRecord};
use serde::Deserialize;

use super::json::{JsonArray, JsonItems, JsonMetadata};
use super::protobuf::{FieldValue, ProtobufError};
use super::{DecodeError, ItemList, MAX_KEPT, check_count};
use crate::gardener::object::object_or_default;

/// Nodes, no more than may be kept.
#[derive(Default)]
pub struct NodeList {
    pub nodes: Vec<NodeRecord>,
    bytes: usize,
}

impl NodeList {
    fn push(&mut self, mut node: NodeRecord) -> Result<(), DecodeError> {
        check_count(self.nodes.len() + 1)?;
        self.bytes += size(&node);
        if self.bytes > MAX_KEPT {
            return Err(DecodeError::TooMuch);
        }
        // Nodes are listed by name, which mostly begins with pool and zone: neighbours share the
        // name of their zone.
        if let Some(before) = self.nodes.last().filter(|before| before.zone == node.zone) {
            node.zone.clone_from(&before.zone);
        }
        self.nodes.push(node);
        Ok(())
    }
}

fn size(node: &NodeRecord) -> usize {
    let labels = [node.pool.as_deref(), node.zone.as_deref()];
    let labels = labels.into_iter().flatten().map(str::len);
    let conditions = node
        .conditions
        .iter()
        .map(|condition| condition.kind.len() + condition.status.len() + condition.reason.len());
    size_of::<NodeRecord>()
        + node.name.len()
        + node.conditions.capacity() * size_of::<NodeCondition>()
        + labels.chain(conditions).sum::<usize>()
}

impl ItemList for NodeList {
    const KIND: &'static str = "NodeList";

    fn count(&self) -> usize {
        self.nodes.len()
    }

    fn reserve(&mut self, count: usize) {
        self.nodes.reserve(count);
    }

    fn keep_protobuf(&mut self, item: FieldValue<'_>) -> Result<(), DecodeError> {
        self.push(node(item)?)
    }

    fn append(&mut self, page: Self) -> Result<(), DecodeError> {
        page.nodes.into_iter().try_for_each(|node| self.push(node))
    }
}

fn node(value: FieldValue<'_>) -> Result<NodeRecord, ProtobufError> {
    let mut node = NodeRecord::default();
    for field in value.message()? {
        match field? {
            (1, metadata) => read_metadata(metadata, &mut node)?,
            (3, status) => read_conditions(status, &mut node)?,
            _ => {}
        }
    }
    Ok(node)
}

fn read_metadata(metadata: FieldValue<'_>, node: &mut NodeRecord) -> Result<(), ProtobufError> {
    for field in metadata.message()? {
        match field? {
            (1, value) => value.text()?.clone_into(&mut node.name),
            (11, label) => {
                let [key, value] = label.texts([(1, ""), (2, "")])?;
                node.note_label(key, value);
            }
            (12, annotation) => {
                let [key] = annotation.texts([(1, "")])?;
                node.note_annotation(key);
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_conditions(status: FieldValue<'_>, node: &mut NodeRecord) -> Result<(), ProtobufError> {
    for field in status.message()? {
        if let (4, condition) = field? {
            let [kind, status, reason] = condition.texts([(1, ""), (2, ""), (5, "")])?;
            node.note_condition(NodeCondition {
                kind,
                status,
                reason,
            });
        }
    }
    Ok(())
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct JsonNode<'a> {
    #[serde(borrow, deserialize_with = "object_or_default")]
    metadata: JsonMetadata<'a>,
    #[serde(deserialize_with = "object_or_default")]
    status: NodeStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    conditions: JsonArray<NodeRecord>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct JsonCondition<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    reason: Cow<'a, str>,
}

impl<'de> JsonItems<'de> for NodeList {
    type Item = JsonNode<'de>;

    fn keep(&mut self, JsonNode { metadata, status }: JsonNode<'de>) -> Result<(), DecodeError> {
        self.push(NodeRecord {
            name: metadata.name.into_owned(),
            pool: metadata.labels.pool,
            zone: metadata.labels.zone.as_deref().map(Into::into),
            not_managed_by_mcm: metadata.annotations.not_managed_by_mcm.is_some(),
            conditions: status.conditions.kept.conditions,
        })
    }
}

/// Keeps the conditions in a node of which nothing else is known.
impl<'de> JsonItems<'de> for NodeRecord {
    type Item = JsonCondition<'de>;

    fn keep(&mut self, condition: JsonCondition<'de>) -> Result<(), DecodeError> {
        self.note_condition(NodeCondition {
            kind: &condition.kind,
            status: &condition.status,
            reason: &condition.reason,
        });
        Ok(())
    }
}
