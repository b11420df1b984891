//! A Node on the wire.

use std::collections::BTreeSet;
use std::sync::Arc;

use prober_core::verdict::{NodeCondition, NodeRecord, NodeTraits};

use super::protobuf::{FieldSchema, MessageSchema, message};
use super::{DecodeError, ItemFields, ItemList, ListField, ListRoom};

static NODE: [FieldSchema; 4] = message(&[
    (1, FieldSchema::Message(ListField::Metadata, &METADATA)),
    (3, FieldSchema::Message(ListField::Status, &STATUS)),
]);
static METADATA: [FieldSchema; 13] = message(&[
    (1, FieldSchema::Text(ListField::Name)),
    (11, FieldSchema::Message(ListField::Label, &LABEL)),
    (12, FieldSchema::Message(ListField::Annotation, &ANNOTATION)),
]);
static LABEL: [FieldSchema; 3] = message(&[
    (1, FieldSchema::ShortText(ListField::LabelKey)),
    (2, FieldSchema::ShortText(ListField::LabelValue)),
]);
static ANNOTATION: [FieldSchema; 2] =
    message(&[(1, FieldSchema::ShortText(ListField::AnnotationKey))]);
static STATUS: [FieldSchema; 5] =
    message(&[(4, FieldSchema::Message(ListField::Condition, &CONDITION))]);
static CONDITION: [FieldSchema; 6] = message(&[
    (1, FieldSchema::ShortText(ListField::ConditionType)),
    (2, FieldSchema::ShortText(ListField::ConditionStatus)),
    (5, FieldSchema::ShortText(ListField::ConditionReason)),
]);

/// Nodes, no more than may be kept.
#[derive(Default)]
pub struct NodeList {
    pub nodes: Vec<NodeRecord>,
    /// Those of all nodes, each of them once.
    traits: BTreeSet<Arc<NodeTraits>>,
    bytes: usize,
}

/// Relevant fields of a node, as far as received.
#[derive(Default)]
pub struct NodeFields {
    name: String,
    traits: NodeTraits,
    /// The texts of the label, annotation or condition that is coming.
    texts: [String; 3],
}

impl ItemFields for NodeFields {
    #[inline(always)]
    fn begin(&mut self, field: ListField, _length: usize) {
        let begins = [
            ListField::Label,
            ListField::Annotation,
            ListField::Condition,
        ];
        if begins.contains(&field) {
            self.texts.iter_mut().for_each(String::clear);
        }
    }

    #[inline(always)]
    fn text(&mut self, field: ListField, text: &str) {
        let [first, second, third] = &mut self.texts;
        let place = match field {
            ListField::Name => &mut self.name,
            ListField::LabelKey | ListField::AnnotationKey | ListField::ConditionType => first,
            ListField::LabelValue | ListField::ConditionStatus => second,
            ListField::ConditionReason => third,
            _ => return,
        };
        text.clone_into(place);
    }

    #[inline(always)]
    fn end(&mut self, field: ListField) {
        let [first, second, third] = &self.texts;
        match field {
            ListField::Label => self.traits.note_label(first, second),
            ListField::Annotation => self.traits.note_annotation(first),
            ListField::Condition => self.traits.note_condition(NodeCondition {
                kind: first,
                status: second,
                reason: third,
            }),
            _ => {}
        }
    }
}

impl ItemList for NodeList {
    const KIND: &'static str = "NodeList";
    const ITEM: MessageSchema = &NODE;

    type Item = NodeFields;

    fn count(&self) -> usize {
        self.nodes.len()
    }

    fn kept(&self) -> usize {
        self.bytes
    }

    fn expect(&mut self, _count: usize, _room: &ListRoom) -> Result<(), DecodeError> {
        Ok(())
    }

    fn keep(&mut self, item: &mut NodeFields, room: &ListRoom) -> Result<(), DecodeError> {
        let traits = std::mem::take(&mut item.traits);
        let name: Arc<str> = item.name.as_str().into();
        item.name.clear();
        let known = self.traits.get(&traits).cloned();
        let bytes = size_of::<NodeRecord>()
            + name.len()
            + known.as_ref().map_or_else(|| size(&traits), |_| 0);
        room.take(bytes)?;
        self.bytes += bytes;
        let traits = known.unwrap_or_else(|| traits.into());
        self.traits.insert(Arc::clone(&traits));
        self.nodes.push(NodeRecord { name, traits });
        Ok(())
    }

    fn append(&mut self, page: Self) {
        self.nodes.extend(page.nodes);
        self.traits.extend(page.traits);
        self.bytes += page.bytes;
    }
}

fn size(traits: &NodeTraits) -> usize {
    let pool = traits.pool.iter().map(String::len);
    let conditions = traits
        .conditions
        .iter()
        .map(|condition| condition.kind.len() + condition.status.len() + condition.reason.len());
    size_of::<NodeTraits>()
        + traits.conditions.capacity() * size_of::<NodeCondition>()
        + pool.chain(conditions).sum::<usize>()
}
