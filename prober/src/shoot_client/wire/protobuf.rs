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

/// Fields that are read of a message, at their numbers in Kubernetes' `generated.proto` files.
/// Fields with other numbers are skipped.
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
    /// Bytes so far of a field that is read.
    begun: Vec<u8>,
}

#[derive(Clone, Copy)]
struct OpenMessage {
    field: ListField,
    schema: MessageSchema,
    end: usize,
}

/// Reason to read no more fields of a message.
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
    let mut rest = bytes;
    let cut = |rest: &[u8]| match to_come {
        0 => Err(ProtobufError::Cut.into()),
        _ => Ok((bytes.len() - rest.len(), Stop::Lacking(1))),
    };
    while !rest.is_empty() {
        let Some((key, behind)) = number(rest)? else {
            return cut(rest);
        };
        let key = u32::try_from(key).map_err(|_| ProtobufError::Key)?;
        let field = schema.get((key >> 3) as usize);
        let field = field.unwrap_or(&FieldSchema::Skipped);
        let (length, behind) = match (key & 7, field) {
            _ if key < 8 => return Err(ProtobufError::Key.into()),
            (0, _) => {
                let Some((number, behind)) = number(behind)? else {
                    return cut(rest);
                };
                match field {
                    FieldSchema::Skipped => {}
                    FieldSchema::Number(field) => reader.number(*field, number),
                    _ => return Err(ProtobufError::WireType.into()),
                }
                rest = behind;
                continue;
            }
            (2, _) => {
                let Some((length, behind)) = number(behind)? else {
                    return cut(rest);
                };
                let length = usize::try_from(length).map_err(|_| ProtobufError::Cut)?;
                (length, behind)
            }
            // Numbers of fixed width; no field that is read here is one.
            (1, FieldSchema::Skipped) => (8, behind),
            (5, FieldSchema::Skipped) => (4, behind),
            (1 | 5, _) => return Err(ProtobufError::WireType.into()),
            _ => return Err(ProtobufError::Key.into()),
        };
        let Some((value, after)) = behind.split_at_checked(length) else {
            let stop = begin_bytes(reader, *field, length, behind.len(), to_come)?;
            let left = match stop {
                Stop::Lacking(_) => rest,
                _ => behind,
            };
            return Ok((bytes.len() - left.len(), stop));
        };
        read_bytes(reader, field, value)?;
        rest = after;
    }
    Ok((bytes.len(), Stop::Read))
}

/// Reads a field of bytes that are all here.
#[inline(always)]
fn read_bytes<R: ReadFields>(
    reader: &mut R,
    field: &FieldSchema,
    value: &[u8],
) -> Result<(), DecodeError> {
    match field {
        FieldSchema::Skipped => {}
        FieldSchema::Message(field, schema) => {
            reader.begin(*field, value.len())?;
            read_fields(reader, schema, value, 0)?;
            reader.end(*field)?;
        }
        FieldSchema::Text(_) if value.len() > MAX_TEXT => return Err(DecodeError::LongText),
        FieldSchema::ShortText(field) if value.len() > MAX_TEXT => reader.text(*field, ""),
        FieldSchema::Text(field) | FieldSchema::ShortText(field) => {
            let text = std::str::from_utf8(value).map_err(|_| ProtobufError::Text)?;
            reader.text(*field, text);
        }
        FieldSchema::Number(_) => return Err(ProtobufError::WireType.into()),
    }
    Ok(())
}

/// Begins a field of `length` bytes: `here` are here, no more than `to_come` can follow.
#[cold]
fn begin_bytes<R: ReadFields>(
    reader: &mut R,
    field: FieldSchema,
    length: usize,
    here: usize,
    to_come: usize,
) -> Result<Stop, DecodeError> {
    if length - here > to_come {
        return Err(ProtobufError::Cut.into());
    }
    match field {
        FieldSchema::Skipped => Ok(Stop::Skipped(length)),
        FieldSchema::Message(field, schema) => Ok(Stop::Message(field, schema, length)),
        FieldSchema::Text(_) if length > MAX_TEXT => Err(DecodeError::LongText),
        FieldSchema::ShortText(field) if length > MAX_TEXT => {
            reader.text(field, "");
            Ok(Stop::Skipped(length))
        }
        FieldSchema::Text(_) | FieldSchema::ShortText(_) => Ok(Stop::Lacking(length - here)),
        FieldSchema::Number(_) => Err(ProtobufError::WireType.into()),
    }
}

/// The number that begins these bytes, seven bits a byte, and what is behind it; `None` if they end
/// within it.
#[inline(always)]
fn number(bytes: &[u8]) -> Result<Option<(u64, &[u8])>, ProtobufError> {
    match bytes {
        [first @ ..0x80, rest @ ..] => Ok(Some(((*first).into(), rest))),
        [first, second @ ..0x80, rest @ ..] => Ok(Some((
            u64::from(first & 0x7f) | u64::from(*second) << 7,
            rest,
        ))),
        _ => long_number(bytes),
    }
}

#[inline(never)]
fn long_number(bytes: &[u8]) -> Result<Option<(u64, &[u8])>, ProtobufError> {
    let mut number = 0;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        if at == 9 && byte > 1 {
            break;
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Ok(Some((number, &bytes[at + 1..])));
        }
    }
    if bytes.len() < 10 {
        Ok(None)
    } else {
        Err(ProtobufError::Number)
    }
}
