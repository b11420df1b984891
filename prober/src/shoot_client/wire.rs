//! Lists of leases and nodes in Kubernetes' protobuf. A list is split into its items as it arrives.
//! One is held until it is complete; prost decodes it, and nothing is kept of it but the few values
//! that matter.
//!
//! ```text
//! "k8s\0" Unknown { 1: TypeMeta { 2: kind }, 2: List { 1: ListMeta { 2: resourceVersion, 3: continue }, 2: item, 2: item, ... } }
//! ```

mod lease;
mod node;

use std::io;

use futures::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, Take, copy_buf, sink};
use futures::{FutureExt, TryStreamExt, stream};
use prost::Message;
use prost::encoding::{WireType, check_wire_type, decode_key, decode_varint};

use super::error::ProbeStep;

pub use self::node::NodeList;

/// Begins every content type of Kubernetes' protobuf.
pub(super) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// Begins every body in it.
const MAGIC: [u8; 4] = *b"k8s\0";
/// The most that is held of a list, in bytes, the item that is coming included: twice what 5,000
/// leases or nodes take whose names have 64 bytes.
const MAX_HELD: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("the answer is {0:?}, not {CONTENT_TYPE}")]
    ContentType(String),
    #[error("the answer does not begin like Kubernetes protobuf")]
    Magic,
    #[error("{0}")]
    Protobuf(#[from] prost::DecodeError),
    /// The body's own error, or that a field ends behind its end.
    #[error("the list cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("the list ends within an item")]
    Cut,
    #[error("the answer is a {found:?}, not a {expected}")]
    Kind {
        expected: &'static str,
        found: String,
    },
    #[error("of the list more than {MAX_HELD} bytes would be held")]
    TooLarge,
    /// No list of an API server is without a resourceVersion.
    #[error("the list has no resourceVersion")]
    NoResourceVersion,
    #[error("renewTime of lease {0:?} is not a point in time")]
    RenewTime(String),
}

/// The items of a list; only what matters of each is kept.
pub trait ItemList: Clone + Default + Send + Sync + 'static {
    const KIND: &'static str;
    /// The path of the list, with the query.
    const PATH: &'static str;
    const STEP: ProbeStep;

    /// An item as prost decodes it. One value serves all, so that only the first one allocates.
    type Item: Message + Default;

    /// The bytes that the items take.
    fn bytes(&self) -> usize;

    /// Adds an item. With it about `to_come` will come.
    fn add(&mut self, item: &mut Self::Item, to_come: usize) -> Result<(), DecodeError>;
}

/// A list up to the end of a page.
pub struct Page<L> {
    pub items: L,
    /// The token of the next page; `None` after the last one.
    pub next: Option<String>,
}

#[derive(Message)]
struct TypeMeta {
    #[prost(string, tag = "2")]
    kind: String,
}

#[derive(Message)]
struct ListMeta {
    #[prost(string, tag = "2")]
    resource_version: String,
    #[prost(string, tag = "3")]
    next: String,
}

/// Reads the page behind these items.
pub async fn read_page<L: ItemList>(
    mut body: impl AsyncBufRead + Unpin,
    mut items: L,
) -> Result<Page<L>, DecodeError> {
    let mut magic = [0; MAGIC.len()];
    body.read_exact(&mut magic).await?;
    if magic != MAGIC {
        return Err(DecodeError::Magic);
    }
    let (mut type_meta, mut meta) = (TypeMeta::default(), ListMeta::default());
    let mut held = Vec::new();
    while let Some((number, length)) = next_field(&mut body).await? {
        match number {
            1 => {
                hold(&mut body, length, MAX_HELD, &mut held).await?;
                type_meta.merge(&*held)?;
            }
            2 => {
                // The kind comes before the list, from every API server. Taken, so that a second
                // list has none.
                let found = std::mem::take(&mut type_meta.kind);
                if found != L::KIND {
                    return Err(DecodeError::Kind {
                        expected: L::KIND,
                        found: shortened(&found),
                    });
                }
                let mut list = (&mut body).take(length);
                meta = read_list(&mut list, &mut items, &mut held).await?;
                if list.limit() > 0 {
                    return Err(DecodeError::Cut);
                }
            }
            _ => skip(&mut body, length).await?,
        }
    }
    if meta.resource_version.is_empty() {
        return Err(DecodeError::NoResourceVersion);
    }
    let next = Some(meta.next).filter(|token| !token.is_empty());
    Ok(Page { items, next })
}

async fn read_list<L: ItemList>(
    list: &mut Take<impl AsyncBufRead + Unpin>,
    items: &mut L,
    held: &mut Vec<u8>,
) -> Result<ListMeta, DecodeError> {
    let (mut meta, mut item) = (ListMeta::default(), L::Item::default());
    while let Some((number, length)) = next_field(list).await? {
        if number > 2 {
            skip(list, length).await?;
            continue;
        }
        // The others are about as long.
        let to_come = list.limit() / length.max(1);
        let room = MAX_HELD.saturating_sub(items.bytes());
        hold(list, length, room, held).await?;
        if number == 1 {
            meta.merge(&**held)?;
        } else {
            item.clear();
            item.merge(&**held)?;
            items.add(&mut item, to_come as usize)?;
        }
    }
    Ok(meta)
}

/// Reads a page that is there already, in pieces.
pub fn read_pieces<'a, L: ItemList>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Page<L>, DecodeError> {
    let pieces = stream::iter(pieces.into_iter().map(io::Result::Ok));
    let page = read_page(pieces.into_async_read(), L::default());
    page.now_or_never().unwrap_or(Err(DecodeError::Cut))
}

/// The number and the length of the next field, which is bytes as all fields of the envelope and of
/// lists are; `None` at the end.
async fn next_field(
    bytes: &mut (impl AsyncBufRead + Unpin),
) -> Result<Option<(u32, u64)>, DecodeError> {
    if bytes.fill_buf().await?.is_empty() {
        return Ok(None);
    }
    let (number, wire_type) = decode_key(&mut &varint(bytes).await?[..])?;
    check_wire_type(WireType::LengthDelimited, wire_type)?;
    let length = decode_varint(&mut &varint(bytes).await?[..])?;
    Ok(Some((number, length)))
}

/// The bytes of a number; too many if it has no end.
async fn varint(bytes: &mut (impl AsyncBufRead + Unpin)) -> io::Result<[u8; 11]> {
    let mut number = [u8::MAX; 11];
    for byte in &mut number {
        bytes.read_exact(std::slice::from_mut(byte)).await?;
        if *byte < 0x80 {
            break;
        }
    }
    Ok(number)
}

/// Reads a field of this length, if there is room for it.
async fn hold(
    bytes: &mut (impl AsyncBufRead + Unpin),
    length: u64,
    room: usize,
    held: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    // Items without a byte take room as well.
    if length >= room {
        return Err(DecodeError::TooLarge);
    }
    held.resize(length, 0);
    bytes.read_exact(held).await?;
    Ok(())
}

/// Passes over a field that nobody reads.
async fn skip(bytes: &mut (impl AsyncBufRead + Unpin), length: u64) -> Result<(), DecodeError> {
    if copy_buf(bytes.take(length), &mut sink()).await? < length {
        return Err(DecodeError::Cut);
    }
    Ok(())
}

/// Nothing endless gets into a log.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests;
