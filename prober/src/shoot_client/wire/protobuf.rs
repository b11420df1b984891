//! Kubernetes' protobuf, read where it lies: the few fields that matter are read, all others are
//! stepped over. Field numbers are those of Kubernetes' `generated.proto` files.
//!
//! What is read here is checked to the end: lengths, wire types, field numbers, UTF-8. What is
//! stepped over is checked as far as stepping over it needs.

use super::{DecodeError, ItemList, ListMeta, check_count, check_kind};

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

pub(crate) fn read_list<L: ItemList>(body: &[u8], items: &mut L) -> Result<ListMeta, DecodeError> {
    let list = open(L::KIND, body)?;
    let count = count_items(list)?;
    check_count(items.count() + count)?;
    items.reserve(count);
    let (mut version, mut next) = ("", "");
    for field in Message(list) {
        match field? {
            (1, metadata) => [version, next] = metadata.texts([(2, version), (3, next)])?,
            (2, item) => items.keep_protobuf(item)?,
            _ => {}
        }
    }
    Ok(ListMeta {
        resource_version: version.to_owned(),
        next: next.to_owned(),
    })
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

/// A message by its fields.
pub struct Message<'a>(&'a [u8]);

#[derive(Clone, Copy)]
pub enum FieldValue<'a> {
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

    pub fn message(self) -> Result<Message<'a>, ProtobufError> {
        self.bytes().map(Message)
    }

    pub fn text(self) -> Result<&'a str, ProtobufError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| ProtobufError::Text)
    }

    /// Texts of a message by their field numbers, each with its default.
    /// The last one of a number counts.
    #[inline(always)]
    pub fn texts<const N: usize>(
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

    pub fn number(self) -> Result<u64, ProtobufError> {
        match self {
            Self::Number(number) => Ok(number),
            _ => Err(ProtobufError::WireType),
        }
    }

    /// Negative ones come with all 64 bits; what is above 32 does not count.
    pub(crate) fn int32(self) -> Result<i32, ProtobufError> {
        self.number().map(|number| number as i32)
    }
}
