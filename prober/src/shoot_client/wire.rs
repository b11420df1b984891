//! Leases and nodes on the wire: Kubernetes' protobuf, and JSON where a server does not speak it.
//! Nothing is kept of an answer but the few values that matter.

mod json;
mod lease;
mod node;
mod protobuf;

use serde::Deserialize;

use self::json::JsonItems;
pub use self::node::NodeList;
use self::protobuf::FieldValue;

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

/// The items of a list; only what matters of each is kept.
pub trait ItemList: for<'de> JsonItems<'de> {
    const KIND: &'static str;

    fn count(&self) -> usize;

    fn reserve(&mut self, count: usize);

    fn keep_protobuf(&mut self, item: FieldValue<'_>) -> Result<(), DecodeError>;

    fn append(&mut self, page: Self) -> Result<(), DecodeError>;
}

/// Adds a page to earlier pages. On an error the items may have been added in part.
pub fn read_page<L: ItemList>(
    content_type: &str,
    body: &[u8],
    list: &mut L,
) -> Result<Next, DecodeError> {
    let metadata = match content_type {
        protobuf if protobuf.starts_with("application/vnd.kubernetes.protobuf") => {
            protobuf::read_list(body, list)?
        }
        json if json.starts_with("application/json") => json::read_list(body, list)?,
        other => return Err(DecodeError::ContentType(shortened(other))),
    };
    if metadata.resource_version.is_empty() {
        return Err(DecodeError::NoResourceVersion);
    }
    Ok(Some(metadata.next).filter(|token| !token.is_empty()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ListMeta {
    #[serde(rename = "resourceVersion")]
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

/// Refuses more items than a list may have.
fn check_count(count: usize) -> Result<(), DecodeError> {
    if count > MAX_ITEMS {
        Err(DecodeError::TooManyItems)
    } else {
        Ok(())
    }
}

fn check_kind(expected: &'static str, found: &str) -> Result<(), DecodeError> {
    if found == expected {
        return Ok(());
    }
    let found = shortened(found);
    Err(DecodeError::Kind { expected, found })
}

/// Nothing endless gets into a log.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests;
