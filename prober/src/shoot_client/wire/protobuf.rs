//! Kubernetes' protobuf, read where it lies: the few fields that matter are read, all others are
//! stepped over. Field numbers are those of Kubernetes' `generated.proto` files.
//!
//! What is read here is checked to the end: lengths, wire types, field numbers, UTF-8. What is
//! stepped over is checked as far as stepping over it needs.

use chrono::DateTime;
use prober_core::lease::{LeaseList, LeaseRecord};
use prober_core::verdict::{NodeCondition, NodeRecord};

use super::{DecodeError, KeptNodes, ListMeta, check_count, check_kind, shortened};

/// What every protobuf body of Kubernetes begins with.
const MAGIC: &[u8] = b"k8s\0";

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
}

pub fn leases(
    expected: &'static str,
    body: &[u8],
    leases: &mut LeaseList,
) -> Result<ListMeta, DecodeError> {
    let list = open(expected, body)?;
    let count = count_items(list)?;
    check_count(leases.len() + count)?;
    let mut reserved = false;
    items(list, |value| {
        let lease = lease(value)?;
        if !reserved {
            leases.reserve(count, room_for_names(count, lease.name, list));
            reserved = true;
        }
        leases.push(lease);
        Ok(())
    })
}

pub fn nodes(
    expected: &'static str,
    body: &[u8],
    nodes: &mut KeptNodes,
) -> Result<ListMeta, DecodeError> {
    let list = open(expected, body)?;
    let count = count_items(list)?;
    check_count(nodes.nodes.len() + count)?;
    nodes.nodes.reserve(count);
    items(list, |value| nodes.push(node(value)?))
}

/// Takes off Kubernetes' envelope, a `runtime.Unknown`; checks the kind and gives the list.
fn open<'a>(expected: &'static str, body: &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let body = body.strip_prefix(MAGIC).ok_or(DecodeError::Magic)?;
    let (mut kind, mut raw) = ("", [].as_slice());
    for field in Message(body) {
        match field? {
            (1, type_meta) => [kind] = type_meta.texts([(2, kind)])?,
            (2, value) => raw = value.bytes()?,
            _ => {}
        }
    }
    check_kind(expected, kind)?;
    Ok(raw)
}

fn count_items(list: &[u8]) -> Result<usize, ProtobufError> {
    let mut count = 0;
    for field in Message(list) {
        count += usize::from(field?.0 == 2);
    }
    Ok(count)
}

/// How much room the names of a list take, by the first of them: the names of a shoot's nodes are
/// about equally long. Never more than the list itself.
pub(super) fn room_for_names(count: usize, first: &str, list: &[u8]) -> usize {
    count.saturating_mul(first.len() + 1).min(list.len())
}

/// Hands over the items of a list.
#[inline(always)]
fn items<'a>(
    list: &'a [u8],
    mut take: impl FnMut(FieldValue<'a>) -> Result<(), DecodeError>,
) -> Result<ListMeta, DecodeError> {
    let (mut version, mut next) = ("", "");
    for field in Message(list) {
        match field? {
            (1, metadata) => [version, next] = metadata.texts([(2, version), (3, next)])?,
            (2, item) => take(item)?,
            _ => {}
        }
    }
    Ok(ListMeta {
        resource_version: version.to_owned(),
        next: next.to_owned(),
    })
}

/// A message that comes twice is merged: what a later one says wins, and what only an earlier one
/// says stays.
fn lease(value: FieldValue<'_>) -> Result<LeaseRecord<'_>, DecodeError> {
    let (mut name, mut uid, mut duration_seconds, mut stamp) = ("", "", None, None);
    for field in value.message()? {
        match field? {
            (1, metadata) => [name, uid] = metadata.texts([(1, name), (5, uid)])?,
            (2, spec) => {
                for field in spec.message()? {
                    match field? {
                        (2, value) => duration_seconds = Some(value.int32()?),
                        (4, value) => timestamp(value, &mut stamp)?,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let instant = |(seconds, nanos): (i64, i32)| {
        let instant = u32::try_from(nanos)
            .ok()
            .and_then(|nanos| DateTime::from_timestamp(seconds, nanos));
        instant.ok_or_else(|| DecodeError::RenewTime(shortened(name)))
    };
    let renew_time = stamp.map(instant).transpose()?;
    Ok(LeaseRecord {
        name,
        uid: uid.into(),
        renew_time,
        duration_seconds,
    })
}

/// Seconds and nanoseconds since 1970. An empty message is how Go writes its zero time, which
/// stands for none.
fn timestamp(value: FieldValue<'_>, stamp: &mut Option<(i64, i32)>) -> Result<(), ProtobufError> {
    for field in value.message()? {
        let (seconds, nanos) = stamp.get_or_insert_default();
        match field? {
            (1, value) => *seconds = value.number()? as i64,
            (2, value) => *nanos = value.int32()?,
            _ => {}
        }
    }
    Ok(())
}

fn node(value: FieldValue<'_>) -> Result<NodeRecord, ProtobufError> {
    let mut node = NodeRecord::default();
    for field in value.message()? {
        match field? {
            (1, metadata) => node_metadata(metadata, &mut node)?,
            (3, status) => {
                for field in status.message()? {
                    if let (4, condition) = field? {
                        let [kind, status, reason] =
                            condition.texts([(1, ""), (2, ""), (5, "")])?;
                        node.note_condition(NodeCondition {
                            kind,
                            status,
                            reason,
                        });
                    }
                }
            }
            _ => {}
        }
    }
    Ok(node)
}

fn node_metadata(metadata: FieldValue<'_>, node: &mut NodeRecord) -> Result<(), ProtobufError> {
    for field in metadata.message()? {
        match field? {
            (1, value) => value.text()?.clone_into(&mut node.name),
            (11, label) => {
                let [key, value] = label.entry()?;
                node.note_label(key, value);
            }
            (12, annotation) => node.note_annotation(annotation.entry()?[0]),
            _ => {}
        }
    }
    Ok(())
}

struct Message<'a>(&'a [u8]);

#[derive(Clone, Copy)]
enum FieldValue<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A number of fixed width; no field that is read here is one.
    Fixed,
}

impl<'a> Iterator for Message<'a> {
    type Item = Result<(u32, FieldValue<'a>), ProtobufError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        (!self.0.is_empty()).then(|| self.field())
    }
}

impl<'a> Message<'a> {
    #[inline(always)]
    fn field(&mut self) -> Result<(u32, FieldValue<'a>), ProtobufError> {
        let key = u32::try_from(self.number()?).map_err(|_| ProtobufError::Key)?;
        let value = match key & 7 {
            0 => FieldValue::Number(self.number()?),
            1 => self.take(8).map(|_| FieldValue::Fixed)?,
            2 => {
                let length = usize::try_from(self.number()?).map_err(|_| ProtobufError::Cut)?;
                FieldValue::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| FieldValue::Fixed)?,
            _ => return Err(ProtobufError::Key),
        };
        match key >> 3 {
            0 => Err(ProtobufError::Key),
            number => Ok((number, value)),
        }
    }

    #[inline(always)]
    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtobufError::Cut)?;
        self.0 = rest;
        Ok(taken)
    }

    /// A number, seven bits a byte; most have one or two bytes.
    #[inline(always)]
    fn number(&mut self) -> Result<u64, ProtobufError> {
        match *self.0 {
            [first, ref rest @ ..] if first < 0x80 => {
                self.0 = rest;
                Ok(first.into())
            }
            [first, second, ref rest @ ..] if second < 0x80 => {
                self.0 = rest;
                Ok(u64::from(first & 0x7f) | u64::from(second) << 7)
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64, ProtobufError> {
        let mut number = 0;
        for (at, &byte) in self.0.iter().enumerate().take(10) {
            if at == 9 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.take(at + 1)?;
                return Ok(number);
            }
        }
        Err(if self.0.len() < 10 {
            ProtobufError::Cut
        } else {
            ProtobufError::Number
        })
    }
}

impl<'a> FieldValue<'a> {
    fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(ProtobufError::WireType),
        }
    }

    fn message(self) -> Result<Message<'a>, ProtobufError> {
        self.bytes().map(Message)
    }

    fn text(self) -> Result<&'a str, ProtobufError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| ProtobufError::Text)
    }

    /// Texts of a message by their numbers, each with what it is where the message does not say.
    /// The last one of a number counts.
    #[inline(always)]
    fn texts<const N: usize>(
        self,
        mut texts: [(u32, &'a str); N],
    ) -> Result<[&'a str; N], ProtobufError> {
        for field in self.message()? {
            let (number, value) = field?;
            if let Some((_, text)) = texts.iter_mut().find(|(wanted, _)| *wanted == number) {
                *text = value.text()?;
            }
        }
        Ok(texts.map(|(_, text)| text))
    }

    /// Key and value of a map's entry.
    fn entry(self) -> Result<[&'a str; 2], ProtobufError> {
        self.texts([(1, ""), (2, "")])
    }

    fn number(self) -> Result<u64, ProtobufError> {
        match self {
            Self::Number(number) => Ok(number),
            _ => Err(ProtobufError::WireType),
        }
    }

    /// Negative ones come with all 64 bits; what is above 32 does not count.
    fn int32(self) -> Result<i32, ProtobufError> {
        self.number().map(|number| number as i32)
    }
}
