//! A Node on the wire.

use std::collections::BTreeSet;
use std::sync::Arc;

use prober_core::verdict::{NodeCondition, NodeRecord, NodeTraits};
use prost::Message;

use super::{DecodeError, ItemList, ProbeStep};

#[derive(Message)]
pub struct WireNode {
    #[prost(message, required, tag = "1")]
    metadata: NodeMeta,
    #[prost(message, required, tag = "3")]
    status: NodeStatus,
}

#[derive(Message)]
struct NodeMeta {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "11")]
    labels: Vec<NodeLabel>,
    #[prost(message, repeated, tag = "12")]
    annotations: Vec<NodeAnnotation>,
}

#[derive(Message)]
struct NodeLabel {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// Its value, which may be long, does not matter.
#[derive(Message)]
struct NodeAnnotation {
    #[prost(string, tag = "1")]
    key: String,
}

#[derive(Message)]
struct NodeStatus {
    #[prost(message, repeated, tag = "4")]
    conditions: Vec<WireCondition>,
}

#[derive(Message)]
struct WireCondition {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "2")]
    status: String,
    #[prost(string, tag = "5")]
    reason: String,
}

/// Nodes, of which equal traits are held once.
#[derive(Clone, Default)]
pub struct NodeList {
    pub nodes: Vec<NodeRecord>,
    traits: BTreeSet<Arc<NodeTraits>>,
    bytes: usize,
}

impl ItemList for NodeList {
    const KIND: &'static str = "NodeList";
    /// In pages that stay within the limit of an answer if a node has 40 kB: kubectl's 500 nodes
    /// would not.
    const PATH: &'static str = "/api/v1/nodes?limit=200";
    const STEP: ProbeStep = ProbeStep::Nodes;

    type Item = WireNode;

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn add(&mut self, node: &mut WireNode, _to_come: usize) -> Result<(), DecodeError> {
        // Taken, since it may be much larger than what is kept of it.
        let node = std::mem::take(node);
        let name = Arc::<str>::from(&*node.metadata.name);
        let traits = traits(&node);
        self.bytes += size_of::<NodeRecord>() + name.len();
        let known = self.traits.get(&traits).cloned();
        let traits = known.unwrap_or_else(|| {
            self.bytes += size(&traits);
            traits.into()
        });
        self.traits.insert(Arc::clone(&traits));
        self.nodes.push(NodeRecord { name, traits });
        Ok(())
    }
}

fn traits(node: &WireNode) -> NodeTraits {
    let mut traits = NodeTraits::default();
    for NodeLabel { key, value } in &node.metadata.labels {
        traits.note_label(key, value);
    }
    for NodeAnnotation { key } in &node.metadata.annotations {
        traits.note_annotation(key);
    }
    for condition in &node.status.conditions {
        traits.note_condition(NodeCondition {
            kind: &*condition.kind,
            status: &*condition.status,
            reason: &*condition.reason,
        });
    }
    traits
}

/// The bytes that these take.
fn size(traits: &NodeTraits) -> usize {
    let NodeTraits {
        pool, conditions, ..
    } = traits;
    let texts = conditions
        .iter()
        .flat_map(|one| [&one.kind, &one.status, &one.reason]);
    let texts = texts.chain(pool).map(String::len);
    size_of::<NodeTraits>() + size_of_val(&**conditions) + texts.sum::<usize>()
}
