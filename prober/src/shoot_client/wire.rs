//! Lists of leases and nodes in Kubernetes' protobuf. A list is split into its items as it arrives.
//! One is held until it is complete; prost decodes it, and nothing is kept of it but the few values
//! that matter.
//!
//! ```text
//! "k8s\0" Unknown { 1: TypeMeta { 2: kind }, 2: List { 1: ListMeta { 2: resourceVersion, 3: continue }, 2: item, 2: item, ... } }
//! ```

mod lease;
mod node;

use parking_lot::Mutex;
use prost::Message;
use prost::encoding::{WireType, check_wire_type, decode_key, decode_varint};

pub use self::node::NodeList;

/// Begins every content type of Kubernetes' protobuf.
const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// Begins every body in it.
const MAGIC: &[u8] = b"k8s\0";
/// The most bytes of the key of a field and its length.
const MAX_HEAD: usize = 20;

/// The most items that are read from the pages of a list: four times as many nodes as Kubernetes
/// supports in a cluster.
const MAX_ITEMS: usize = 20_000;
/// The most that is held of a list, in bytes, the item that is coming included: twice what 5,000
/// leases or nodes take whose names have 64 bytes.
const MAX_HELD: usize = 1 << 20;
/// The longest text that is read, in bytes: names have 253 at most, reasons of conditions 1,024; the
/// token of a page has the longest name in it, in base64.
const MAX_TEXT: usize = 1024;

/// No honest item is larger, in bytes. A forged one of 1 MiB may be half a million empty conditions,
/// which take 36 times as much when they are decoded: only one of these is decoded at a time.
const LARGE: usize = 64 << 10;
static LARGE_ITEM: Mutex<()> = Mutex::new(());

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("the answer is {0:?}, not {CONTENT_TYPE}")]
    ContentType(String),
    #[error("the answer does not begin like Kubernetes protobuf")]
    Magic,
    #[error("{0}")]
    Protobuf(#[from] prost::DecodeError),
    #[error("the list ends within a field")]
    Cut,
    #[error("the answer is a {found:?}, not a {expected}")]
    Kind {
        expected: &'static str,
        found: String,
    },
    #[error(
        "the list has more than {MAX_ITEMS} items, {MAX_HELD} bytes to be held, or {MAX_TEXT} bytes of a text"
    )]
    TooLarge,
    /// No list of an API server is without a resourceVersion.
    #[error("the list has no resourceVersion")]
    NoResourceVersion,
    #[error("renewTime of lease {0:?} is not a point in time")]
    RenewTime(String),
}

/// The items of a list; only what matters of each is kept.
pub trait ItemList: Clone + Default + Send {
    const KIND: &'static str;

    /// An item as prost decodes it. One value serves all, so that only the first one allocates.
    type Item: Message + Default;

    fn count(&self) -> usize;

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

/// The message whose fields come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    Envelope,
    /// So many bytes of it are to come.
    List(usize),
}

impl Within {
    fn list(left: usize) -> Self {
        if left == 0 {
            Self::Envelope
        } else {
            Self::List(left)
        }
    }
}

pub struct ListReader<L: ItemList> {
    within: Within,
    /// Bytes that are not read yet, since their field is not complete.
    held: Vec<u8>,
    /// Bytes to come of a field that nobody reads.
    skipped: usize,
    type_meta: TypeMeta,
    list_meta: ListMeta,
    item: L::Item,
    items: L,
}

impl<L: ItemList> ListReader<L> {
    /// Reads the page behind these items.
    pub fn new(items: L) -> Self {
        Self {
            within: Within::Nothing,
            held: Vec::new(),
            skipped: 0,
            type_meta: TypeMeta::default(),
            list_meta: ListMeta::default(),
            item: L::Item::default(),
            items,
        }
    }

    /// Reads the field that begins these bytes, of the list only its head. Returns what is behind
    /// it; `None` if it is not complete.
    fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, DecodeError> {
        if self.within == Within::Nothing {
            return self.read_magic(bytes);
        }
        let (tag, begin, end) = match head(bytes) {
            Err(_) if bytes.len() < MAX_HEAD => return Ok(None),
            head => head?,
        };
        if (self.within, tag) == (Within::Envelope, 2) {
            self.begin_list(end - begin)?;
            return Ok(Some(&bytes[begin..]));
        }
        let (content, rest) = if tag > 2 {
            // Nobody reads it.
            self.skipped = end.saturating_sub(bytes.len());
            bytes.split_at(end.min(bytes.len()))
        } else if end > MAX_HELD.saturating_sub(self.items.bytes()) {
            return Err(DecodeError::TooLarge);
        } else if let Some((field, rest)) = bytes.split_at_checked(end) {
            (&field[begin..], rest)
        } else {
            return Ok(None);
        };
        match (self.within, tag) {
            (Within::Envelope, 1) => self.type_meta.merge(content)?,
            (Within::List(_), 1) => self.list_meta.merge(content)?,
            // The others are about as long.
            (Within::List(left), 2) => self.add(content, left / end)?,
            _ => {}
        }
        if let Within::List(left) = self.within {
            self.within = Within::list(left.checked_sub(end).ok_or(DecodeError::Cut)?);
        }
        Ok(Some(rest))
    }

    fn read_magic<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, DecodeError> {
        if bytes.len() < MAGIC.len() {
            return Ok(None);
        }
        self.within = Within::Envelope;
        bytes
            .strip_prefix(MAGIC)
            .map(Some)
            .ok_or(DecodeError::Magic)
    }

    /// Begins the list. Its kind comes before it, from every API server.
    fn begin_list(&mut self, length: usize) -> Result<(), DecodeError> {
        // Taken, so that a second list has none.
        let found = std::mem::take(&mut self.type_meta.kind);
        if found != L::KIND {
            return Err(DecodeError::Kind {
                expected: L::KIND,
                found: shortened(&found),
            });
        }
        self.within = Within::list(length);
        Ok(())
    }

    fn add(&mut self, item: &[u8], to_come: usize) -> Result<(), DecodeError> {
        if self.items.count() >= MAX_ITEMS {
            return Err(DecodeError::TooLarge);
        }
        let _alone = (item.len() > LARGE).then(|| LARGE_ITEM.lock());
        self.item.clear();
        self.item.merge(item)?;
        self.items.add(&mut self.item, to_come)
    }
}

/// The number of the field that begins these bytes, which is bytes as all fields of the envelope and of
/// lists are, and where its content begins and ends.
fn head(bytes: &[u8]) -> Result<(u32, usize, usize), prost::DecodeError> {
    let mut rest = bytes;
    let (tag, wire_type) = decode_key(&mut rest)?;
    check_wire_type(WireType::LengthDelimited, wire_type)?;
    let length = decode_varint(&mut rest)?;
    let begin = bytes.len() - rest.len();
    Ok((tag, begin, begin.saturating_add(length as usize)))
}

impl<L: ItemList> ListReader<L> {
    pub(crate) fn check_content_type(&self, content_type: &str) -> Result<(), DecodeError> {
        if content_type.starts_with(CONTENT_TYPE) {
            Ok(())
        } else {
            Err(DecodeError::ContentType(shortened(content_type)))
        }
    }

    pub fn feed(&mut self, piece: &[u8]) -> Result<(), DecodeError> {
        let skipped = self.skipped.min(piece.len());
        self.skipped -= skipped;
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(&piece[skipped..]);
        let mut rest = &*held;
        while !rest.is_empty()
            && let Some(behind) = self.read(rest)?
        {
            rest = behind;
        }
        let read = held.len() - rest.len();
        held.drain(..read);
        self.held = held;
        Ok(())
    }

    /// To be called when the body has ended.
    pub fn finish(self) -> Result<Page<L>, DecodeError> {
        if self.within != Within::Envelope || !self.held.is_empty() || self.skipped > 0 {
            return Err(DecodeError::Cut);
        }
        let ListMeta {
            resource_version,
            next,
        } = self.list_meta;
        if resource_version.is_empty() {
            return Err(DecodeError::NoResourceVersion);
        }
        not_too_long(&next)?;
        Ok(Page {
            items: self.items,
            next: Some(next).filter(|token| !token.is_empty()),
        })
    }
}

/// Nothing endless gets into a log.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

fn not_too_long(text: &str) -> Result<&str, DecodeError> {
    if text.len() > MAX_TEXT {
        return Err(DecodeError::TooLarge);
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
