//! Lists of leases and nodes in Kubernetes' protobuf, read item by item as they arrive. Nothing is
//! kept of an answer but the few values that matter.
//!
//! ```text
//! "k8s\0" Unknown { 1: TypeMeta { 2: kind }, 2: List { 1: ListMeta { 2: resourceVersion, 3: continue }, 2: item, 2: item, ... } }
//! ```

mod lease;
mod node;
mod protobuf;

use std::sync::atomic::{AtomicUsize, Ordering};

pub use self::node::NodeList;
use self::protobuf::{
    FieldSchema, MAX_TEXT, MessageSchema, ProtobufError, ProtobufStream, ReadFields, message,
};

/// Begins every content type of Kubernetes' protobuf.
const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// Begins every body in it.
const MAGIC: &[u8] = b"k8s\0";

/// The most items that are read from the pages of a list: four times as many nodes as Kubernetes
/// supports in a cluster.
const MAX_ITEMS: usize = 20_000;
/// The most that is kept of the pages of a list, in bytes: twice what 5,000 leases or nodes take
/// whose names have 64 bytes.
const MAX_KEPT: usize = 1 << 20;

/// Field read from an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ListField {
    Body,
    TypeMeta,
    Kind,
    List,
    ListMeta,
    ResourceVersion,
    Continue,
    Item,
    Metadata,
    Name,
    Uid,
    Label,
    LabelKey,
    LabelValue,
    Annotation,
    AnnotationKey,
    Spec,
    Duration,
    RenewTime,
    Seconds,
    Nanos,
    Status,
    Condition,
    ConditionType,
    ConditionStatus,
    ConditionReason,
}

static TYPE_META: [FieldSchema; 3] = message(&[(2, FieldSchema::Text(ListField::Kind))]);
static LIST_META: [FieldSchema; 4] = message(&[
    (2, FieldSchema::Text(ListField::ResourceVersion)),
    (3, FieldSchema::Text(ListField::Continue)),
]);

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("the answer is {0:?}, not {CONTENT_TYPE}")]
    ContentType(String),
    #[error("the answer does not begin like Kubernetes protobuf")]
    Magic,
    #[error("the protobuf is broken")]
    Protobuf(#[from] ProtobufError),
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
    #[error("a text that matters has more than {MAX_TEXT} bytes")]
    LongText,
    /// No list of an API server is without a resourceVersion.
    #[error("the list has no resourceVersion")]
    NoResourceVersion,
    #[error("renewTime of lease {0:?} is not a point in time")]
    RenewTime(String),
}

/// Reads the body of an answer as it arrives.
pub trait ReadBody: Send {
    type Read: Send;

    fn check_content_type(&self, _content_type: &str) -> Result<(), DecodeError> {
        Ok(())
    }

    fn feed(&mut self, piece: &[u8]) -> Result<(), DecodeError>;

    /// To be called when the body has ended.
    fn finish(self) -> Result<Self::Read, DecodeError>;
}

/// The items of a list; only what matters of each is kept.
pub trait ItemList: Default + Send {
    const KIND: &'static str;

    const ITEM: MessageSchema;
    const LIST: MessageSchema = &message::<3>(&[
        (1, FieldSchema::Message(ListField::ListMeta, &LIST_META)),
        (2, FieldSchema::Message(ListField::Item, Self::ITEM)),
    ]);
    const BODY: MessageSchema = &message::<3>(&[
        (1, FieldSchema::Message(ListField::TypeMeta, &TYPE_META)),
        (2, FieldSchema::Message(ListField::List, Self::LIST)),
    ]);

    type Item: ItemFields;

    fn count(&self) -> usize;

    /// The bytes that the items take.
    fn kept(&self) -> usize;

    /// Makes room for so many items, where that saves something.
    fn expect(&mut self, count: usize, room: &ListRoom) -> Result<(), DecodeError>;

    /// Takes a complete item out.
    fn keep(&mut self, item: &mut Self::Item, room: &ListRoom) -> Result<(), DecodeError>;

    /// Adds the next page.
    fn append(&mut self, page: Self);
}

/// Relevant fields of an item, as far as received.
pub trait ItemFields: Default + Send {
    fn begin(&mut self, _field: ListField, _length: usize) {}

    fn number(&mut self, _field: ListField, _number: u64) {}

    fn text(&mut self, field: ListField, text: &str);

    fn end(&mut self, _field: ListField) {}
}

/// Room for a page, after the pages before it. All attempts at the page share it, so that two that
/// stall hold no more than one.
pub struct ListRoom {
    items: usize,
    bytes: AtomicUsize,
}

impl ListRoom {
    pub fn after<L: ItemList>(pages: &L) -> Self {
        Self {
            items: MAX_ITEMS.saturating_sub(pages.count()),
            bytes: MAX_KEPT.saturating_sub(pages.kept()).into(),
        }
    }

    fn take(&self, bytes: usize) -> Result<(), DecodeError> {
        let less = |left: usize| left.checked_sub(bytes);
        match self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
        {
            Ok(_) => Ok(()),
            Err(_) => Err(DecodeError::TooMuch),
        }
    }
}

pub struct Page<L> {
    pub items: L,
    /// The token of the next page; `None` after the last one.
    pub next: Option<String>,
}

pub struct ListReader<'a, L: ItemList> {
    /// Bytes required before the protobuf.
    magic: &'static [u8],
    stream: ProtobufStream,
    page: PageFields<'a, L>,
}

impl<'a, L: ItemList> ListReader<'a, L> {
    /// About `expected` items will come.
    pub fn new(expected: usize, room: &'a ListRoom) -> Self {
        Self {
            magic: MAGIC,
            stream: ProtobufStream::new(L::BODY),
            page: PageFields {
                expected,
                room,
                other_kind: Some(String::new()),
                has_list: false,
                has_version: false,
                next: String::new(),
                items: L::default(),
                item: L::Item::default(),
            },
        }
    }
}

impl<L: ItemList> ReadBody for ListReader<'_, L> {
    type Read = Page<L>;

    fn check_content_type(&self, content_type: &str) -> Result<(), DecodeError> {
        if content_type.starts_with(CONTENT_TYPE) {
            Ok(())
        } else {
            Err(DecodeError::ContentType(shortened(content_type)))
        }
    }

    fn feed(&mut self, mut piece: &[u8]) -> Result<(), DecodeError> {
        if !self.magic.is_empty() {
            let (magic, rest) = self.magic.split_at(piece.len().min(self.magic.len()));
            piece = piece.strip_prefix(magic).ok_or(DecodeError::Magic)?;
            self.magic = rest;
        }
        self.stream.feed(&mut self.page, piece)
    }

    fn finish(self) -> Result<Page<L>, DecodeError> {
        if !self.magic.is_empty() {
            return Err(DecodeError::Magic);
        }
        self.stream.finish()?;
        self.page.check_kind()?;
        let PageFields {
            has_version,
            next,
            items,
            ..
        } = self.page;
        if !has_version {
            return Err(DecodeError::NoResourceVersion);
        }
        let next = Some(next).filter(|token| !token.is_empty());
        Ok(Page { items, next })
    }
}

/// Relevant fields of a page, as far as received.
struct PageFields<'a, L: ItemList> {
    expected: usize,
    room: &'a ListRoom,
    /// The kind of the answer, unless it is that of the list.
    other_kind: Option<String>,
    has_list: bool,
    has_version: bool,
    next: String,
    items: L,
    item: L::Item,
}

impl<L: ItemList> PageFields<'_, L> {
    fn check_kind(&self) -> Result<(), DecodeError> {
        match &self.other_kind {
            None => Ok(()),
            Some(found) => Err(DecodeError::Kind {
                expected: L::KIND,
                found: found.clone(),
            }),
        }
    }

    /// Begins the list. Its kind comes before it, from every API server.
    fn begin_list(&mut self) -> Result<(), DecodeError> {
        self.check_kind()?;
        if std::mem::replace(&mut self.has_list, true) {
            return Err(ProtobufError::Repeated.into());
        }
        self.items.expect(self.expected, self.room)
    }
}

impl<L: ItemList> ReadFields for PageFields<'_, L> {
    #[inline(always)]
    fn begin(&mut self, field: ListField, length: usize) -> Result<(), DecodeError> {
        match field {
            ListField::List => self.begin_list(),
            ListField::Item if self.items.count() >= self.room.items => {
                Err(DecodeError::TooManyItems)
            }
            field => {
                self.item.begin(field, length);
                Ok(())
            }
        }
    }

    #[inline(always)]
    fn number(&mut self, field: ListField, number: u64) {
        self.item.number(field, number);
    }

    #[inline(always)]
    fn text(&mut self, field: ListField, text: &str) {
        match field {
            ListField::Kind => self.other_kind = (text != L::KIND).then(|| shortened(text)),
            ListField::ResourceVersion => self.has_version = !text.is_empty(),
            ListField::Continue => text.clone_into(&mut self.next),
            field => self.item.text(field, text),
        }
    }

    #[inline(always)]
    fn end(&mut self, field: ListField) -> Result<(), DecodeError> {
        if field == ListField::Item {
            return self.items.keep(&mut self.item, self.room);
        }
        self.item.end(field);
        Ok(())
    }
}

/// Nothing endless gets into a log.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests;
