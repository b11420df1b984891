//! Leases and nodes on the wire: Kubernetes' protobuf, and JSON where a server does not speak it.
//! Nothing is kept of an answer but the few values that matter.

mod json;
mod protobuf;

use prober_core::lease::LeaseList;
use prober_core::verdict::{NodeCondition, NodeRecord};
use serde::Deserialize;

/// The most items that are read from the pages of a list: four times as many nodes as Kubernetes
/// supports in a cluster.
const MAX_ITEMS: usize = 20_000;
/// The most that is kept of the pages of a list of nodes, in bytes. Of an honest node 500 are kept,
/// of 5,000 nodes 2.5 MB.
const MAX_KEPT: usize = 8 << 20;

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("the answer is {0:?}, neither Kubernetes protobuf nor JSON")]
    ContentType(String),
    #[error("the answer does not begin like Kubernetes protobuf")]
    Magic,
    #[error("the protobuf is broken")]
    Protobuf(#[from] protobuf::ProtobufError),
    #[error("the JSON is broken")]
    Json(#[from] json::JsonError),
    #[error("the answer is a {found:?}, not a {expected}")]
    Kind {
        expected: &'static str,
        found: String,
    },
    /// More items than any honest list has, so that a small body cannot become a large table.
    #[error("the list has more than {MAX_ITEMS} items")]
    TooManyItems,
    #[error("the items of the list hold more than {MAX_KEPT} bytes that matter")]
    TooMuch,
    /// No list of an API server is without a resourceVersion.
    #[error("the list has no resourceVersion")]
    NoResourceVersion,
    #[error("renewTime of lease {0:?} is not a point in time")]
    RenewTime(String),
}

/// The token of the next page of a list; none after the last one.
pub type Next = Option<String>;

/// Adds a page of leases to those of earlier pages. On an error the items may have been added in
/// part.
pub fn leases(
    content_type: &str,
    body: &[u8],
    leases: &mut LeaseList,
) -> Result<Next, DecodeError> {
    let read = match is_protobuf(content_type)? {
        true => protobuf::leases,
        false => json::leases,
    };
    read("LeaseList", body, leases)?.next()
}

/// Adds a page of nodes to those of earlier pages. On an error there may be none left.
pub fn nodes(
    content_type: &str,
    body: &[u8],
    nodes: &mut Vec<NodeRecord>,
) -> Result<Next, DecodeError> {
    let read = match is_protobuf(content_type)? {
        true => protobuf::nodes,
        false => json::nodes,
    };
    let mut kept = KeptNodes {
        bytes: nodes.iter().map(size).sum(),
        nodes: std::mem::take(nodes),
    };
    let metadata = read("NodeList", body, &mut kept)?;
    *nodes = kept.nodes;
    metadata.next()
}

/// Whether an answer is in protobuf; else it is in JSON.
fn is_protobuf(content_type: &str) -> Result<bool, DecodeError> {
    match content_type {
        protobuf if protobuf.starts_with("application/vnd.kubernetes.protobuf") => Ok(true),
        json if json.starts_with("application/json") => Ok(false),
        other => Err(DecodeError::ContentType(shortened(other))),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListMeta {
    #[serde(rename = "resourceVersion")]
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

impl ListMeta {
    fn next(self) -> Result<Next, DecodeError> {
        if self.resource_version.is_empty() {
            return Err(DecodeError::NoResourceVersion);
        }
        Ok(Some(self.next).filter(|token| !token.is_empty()))
    }
}

/// Nodes, no more than may be kept.
#[derive(Default)]
struct KeptNodes {
    nodes: Vec<NodeRecord>,
    bytes: usize,
}

impl KeptNodes {
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
    let labels =
        node.pool.as_ref().map_or(0, String::len) + node.zone.as_ref().map_or(0, |zone| zone.len());
    let texts = node
        .conditions
        .iter()
        .map(|condition| condition.kind.len() + condition.status.len() + condition.reason.len());
    size_of::<NodeRecord>()
        + node.name.len()
        + labels
        + node.conditions.capacity() * size_of::<NodeCondition>()
        + texts.sum::<usize>()
}

/// Whether a list may have so many items.
fn check_count(count: usize) -> Result<(), DecodeError> {
    if count > MAX_ITEMS {
        Err(DecodeError::TooManyItems)
    } else {
        Ok(())
    }
}

fn check_kind(expected: &'static str, found: &str) -> Result<(), DecodeError> {
    if found == expected {
        Ok(())
    } else {
        Err(DecodeError::Kind {
            expected,
            found: shortened(found),
        })
    }
}

/// Nothing endless gets into a log.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests;
