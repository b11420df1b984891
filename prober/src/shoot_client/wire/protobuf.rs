//! Protobuf, read as it arrives in pieces: of messages within messages the few fields that matter
//! are read, all others are skipped. Nothing is held of what came but the beginning of a field that
//! matters, until the rest of it comes.
//!
//! What is read here is checked to the end: lengths, wire types, field numbers, UTF-8. What is
//! skipped is checked as far as skipping it needs.

use super::{DecodeError, ListField};

/// The longest text that is read, in bytes: names have 253 at most, the keys of labels 317, types
/// of conditions 316, their reasons 1,024; the token of a page has the longest name in it, in
/// base64.
pub(super) const MAX_TEXT: usize = 1024;
/// Most texts are no longer.
const MOST_TEXTS: usize = 64;
/// Messages within each other that are read, at most: list, item, status, condition.
const MAX_DEPTH: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    #[error("it ends within a field")]
    Cut,
    #[error("a number is too long")]
    Number,
    /// A field number or a wire type that Kubernetes does not use. Groups, which protobuf itself
    /// gave up, are among them.
    #[error("a key names no field")]
    Key,
    #[error("a field is of the wrong type")]
    WireType,
    #[error("a text is not UTF-8")]
    Text,
    #[error("what may be there once comes twice")]
    Repeated,
}

/// How the fields of a message are read, by their numbers, which are those of Kubernetes'
/// `generated.proto` files. Fields with other numbers are skipped.
pub(crate) type MessageSchema = &'static [FieldSchema];

#[derive(Clone, Copy)]
pub enum FieldSchema {
    Skipped,
    Number(ListField),
    /// One that is too long is an error.
    Text(ListField),
    /// One that is too long cannot matter and counts as empty.
    ShortText(ListField),
    Message(ListField, MessageSchema),
}

/// The schema of a message of which these fields are read.
pub(super) const fn message<const LENGTH: usize>(
    read: &[(usize, FieldSchema)],
) -> [FieldSchema; LENGTH] {
    let (mut fields, mut at) = ([FieldSchema::Skipped; LENGTH], 0);
    while at < read.len() {
        fields[read[at].0] = read[at].1;
        at += 1;
    }
    fields
}

/// Reads a message by its fields, which come in any order. A field that comes again takes the place
/// of the one before, a message is merged with it.
pub(super) trait ReadFields {
    /// A message of so many bytes begins.
    fn begin(&mut self, field: ListField, length: usize) -> Result<(), DecodeError>;

    fn number(&mut self, field: ListField, number: u64);

    fn text(&mut self, field: ListField, text: &str);

    fn end(&mut self, field: ListField) -> Result<(), DecodeError>;
}

/// The place that has been reached in a body.
pub(crate) struct ProtobufStream {
    /// Bytes read so far.
    at: usize,
    /// Bytes to come that are skipped; `at` counts them already.
    skipped: usize,
    /// The messages that are read, the innermost last.
    open: [OpenMessage; MAX_DEPTH + 1],
    depth: usize,
    /// What has come of a field that is read.
    begun: Vec<u8>,
}

#[derive(Clone, Copy)]
struct OpenMessage {
    field: ListField,
    schema: MessageSchema,
    end: usize,
}

/// Why no more fields of a message are read.
enum Stop {
    /// All that is here is read.
    Read,
    /// A message begins, of so many bytes.
    Message(ListField, MessageSchema, usize),
    /// A field of so many bytes is skipped, not all of which are here.
    Skipped(usize),
    /// A field that is read lacks at least so many bytes.
    Lacking(usize),
}

#[derive(Clone, Copy)]
enum FieldValue {
    Number(u64),
    Bytes(usize),
    /// A number of fixed width; no field that is read here is one.
    Fixed(usize),
}

impl ProtobufStream {
    /// Reads a body by this schema.
    pub(super) fn new(schema: MessageSchema) -> Self {
        let body = OpenMessage {
            field: ListField::Body,
            schema,
            // It ends when no more comes.
            end: usize::MAX,
        };
        Self {
            at: 0,
            skipped: 0,
            open: [body; MAX_DEPTH + 1],
            depth: 0,
            begun: Vec::with_capacity(MOST_TEXTS),
        }
    }

    pub(super) fn feed<R: ReadFields>(
        &mut self,
        reader: &mut R,
        mut piece: &[u8],
    ) -> Result<(), DecodeError> {
        while !self.begun.is_empty() {
            let mut begun = std::mem::take(&mut self.begun);
            let (rest, lacking) = self.read(reader, &begun)?;
            if rest.is_empty() {
                begun.clear();
            }
            let (more, behind) = piece.split_at(lacking.min(piece.len()));
            begun.extend_from_slice(more);
            (self.begun, piece) = (begun, behind);
            if more.is_empty() {
                break;
            }
        }
        let skipped = self.skipped.min(piece.len());
        self.skipped -= skipped;
        let (rest, _) = self.read(reader, &piece[skipped..])?;
        self.begun.extend_from_slice(rest);
        Ok(())
    }

    /// Checks that the body has ended where it may.
    pub(super) fn finish(&self) -> Result<(), ProtobufError> {
        if self.depth == 0 && self.skipped == 0 && self.begun.is_empty() {
            Ok(())
        } else {
            Err(ProtobufError::Cut)
        }
    }

    /// Reads what is complete in these bytes. Returns the rest, and how many bytes it lacks at
    /// least.
    fn read<'a, R: ReadFields>(
        &mut self,
        reader: &mut R,
        mut bytes: &'a [u8],
    ) -> Result<(&'a [u8], usize), DecodeError> {
        while !bytes.is_empty() {
            let OpenMessage { schema, end, .. } = self.open[self.depth];
            let left = end - self.at;
            let here = &bytes[..left.min(bytes.len())];
            let (used, stop) = read_fields(reader, schema, here, left - here.len())?;
            self.at += used;
            bytes = &bytes[used..];
            match stop {
                Stop::Read => {}
                Stop::Message(field, schema, length) => {
                    reader.begin(field, length)?;
                    self.depth += 1;
                    self.open[self.depth] = OpenMessage {
                        field,
                        schema,
                        end: self.at + length,
                    };
                }
                Stop::Skipped(length) => {
                    self.at += length;
                    self.skipped = length - bytes.len();
                    bytes = &[];
                }
                Stop::Lacking(bytes_more) => return Ok((bytes, bytes_more)),
            }
            // The body itself ends only when no more comes.
            while self.depth > 0 && self.at == self.open[self.depth].end {
                reader.end(self.open[self.depth].field)?;
                self.depth -= 1;
            }
        }
        Ok((bytes, 0))
    }
}

/// Reads fields of a message up to the first that cannot be read here; of the message so many bytes
/// are still to come. Returns how many bytes are read. A message that is here to its end is read at
/// once.
fn read_fields<R: ReadFields>(
    reader: &mut R,
    schema: MessageSchema,
    bytes: &[u8],
    to_come: usize,
) -> Result<(usize, Stop), DecodeError> {
    let mut at = 0;
    while at < bytes.len() {
        let head = match head(bytes, at) {
            Err(ProtobufError::Cut) if to_come > 0 => return Ok((at, Stop::Lacking(1))),
            head => head?,
        };
        let here = bytes.len() - head.end;
        let length = head.length();
        if length > here && length - here > to_come {
            return Err(ProtobufError::Cut.into());
        }
        let field = schema.get(head.number).unwrap_or(&FieldSchema::Skipped);
        match (field, head.value) {
            (FieldSchema::Skipped, _) => {}
            (FieldSchema::Number(field), FieldValue::Number(number)) => {
                reader.number(*field, number);
            }
            (FieldSchema::Message(field, schema), FieldValue::Bytes(_)) => {
                if length > here {
                    return Ok((head.end, Stop::Message(*field, schema, length)));
                }
                reader.begin(*field, length)?;
                read_fields(reader, schema, &bytes[head.end..][..length], 0)?;
                reader.end(*field)?;
            }
            (FieldSchema::Text(_), FieldValue::Bytes(_)) if length > MAX_TEXT => {
                return Err(DecodeError::LongText);
            }
            (FieldSchema::ShortText(field), FieldValue::Bytes(_)) if length > MAX_TEXT => {
                reader.text(*field, "");
            }
            (FieldSchema::Text(field) | FieldSchema::ShortText(field), FieldValue::Bytes(_)) => {
                if length > here {
                    return Ok((at, Stop::Lacking(length - here)));
                }
                let text = std::str::from_utf8(&bytes[head.end..][..length]);
                reader.text(*field, text.map_err(|_| ProtobufError::Text)?);
            }
            _ => return Err(ProtobufError::WireType.into()),
        }
        if length > here {
            return Ok((head.end, Stop::Skipped(length)));
        }
        at = head.end + length;
    }
    Ok((at, Stop::Read))
}

/// A field's number, and its value, or how long that is.
struct FieldHead {
    number: usize,
    value: FieldValue,
    /// Where it ends.
    end: usize,
}

impl FieldHead {
    /// The bytes that follow.
    #[inline(always)]
    fn length(&self) -> usize {
        match self.value {
            FieldValue::Number(_) => 0,
            FieldValue::Bytes(length) | FieldValue::Fixed(length) => length,
        }
    }
}

/// Reads the head of the field that begins there.
#[inline(always)]
fn head(bytes: &[u8], at: usize) -> Result<FieldHead, ProtobufError> {
    // Most fields are numbers (wire type 0) or bytes (2), have a small number themselves, and are
    // small.
    if let (key @ 8..0x80, Some(value @ 0..0x80)) = (bytes[at], bytes.get(at + 1))
        && key & 5 == 0
    {
        return Ok(FieldHead {
            number: usize::from(key >> 3),
            value: match key & 2 {
                0 => FieldValue::Number((*value).into()),
                _ => FieldValue::Bytes((*value).into()),
            },
            end: at + 2,
        });
    }
    let mut rest = &bytes[at..];
    let (number, value) = long_head(&mut rest)?;
    Ok(FieldHead {
        number,
        value,
        end: bytes.len() - rest.len(),
    })
}

#[inline(never)]
fn long_head(bytes: &mut &[u8]) -> Result<(usize, FieldValue), ProtobufError> {
    let key = u32::try_from(number(bytes)?).map_err(|_| ProtobufError::Key)?;
    let value = match key & 7 {
        0 => FieldValue::Number(number(bytes)?),
        1 => FieldValue::Fixed(8),
        2 => {
            let length = usize::try_from(number(bytes)?);
            FieldValue::Bytes(length.map_err(|_| ProtobufError::Cut)?)
        }
        5 => FieldValue::Fixed(4),
        _ => return Err(ProtobufError::Key),
    };
    match key >> 3 {
        0 => Err(ProtobufError::Key),
        number => Ok((number as usize, value)),
    }
}

/// Takes a number off the bytes, seven bits a byte.
#[inline(always)]
fn number(bytes: &mut &[u8]) -> Result<u64, ProtobufError> {
    match **bytes {
        [first, ref rest @ ..] if first < 0x80 => {
            *bytes = rest;
            Ok(first.into())
        }
        [first, second, ref rest @ ..] if second < 0x80 => {
            *bytes = rest;
            Ok(u64::from(first & 0x7f) | u64::from(second) << 7)
        }
        _ => long_number(bytes),
    }
}

fn long_number(bytes: &mut &[u8]) -> Result<u64, ProtobufError> {
    let mut number = 0;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        if at == 9 && byte > 1 {
            break;
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Ok(number);
        }
    }
    Err(if bytes.len() < 10 {
        ProtobufError::Cut
    } else {
        ProtobufError::Number
    })
}
