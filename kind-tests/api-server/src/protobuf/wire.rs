//! The wire format: fields of a message by number, and the envelope that Kubernetes puts around an
//! object.

use chrono::{DateTime, TimeZone};

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Begins every body.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// A number in as few groups of seven bits as it needs.
pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2);
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Appends a field of bytes to a message.
pub fn push(message: &mut Vec<u8>, field: u64, content: &[u8]) {
    message.extend(varint(field << 3 | 2));
    message.extend(varint(content.len() as u64));
    message.extend_from_slice(content);
}

/// A field of bytes.
pub fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    // A key takes at most two bytes here, and a length of 28 bits four.
    let mut out = Vec::with_capacity(content.len() + 6);
    push(&mut out, field, content);
    out
}

/// A field of text.
pub fn text(field: u64, content: &str) -> Vec<u8> {
    bytes(field, content.as_bytes())
}

/// A field with a number.
pub fn number(field: u64, value: i64) -> Vec<u8> {
    [varint(field << 3), varint(value as u64)].concat()
}

/// A field with a message of these fields.
pub fn message(field: u64, parts: &[Vec<u8>]) -> Vec<u8> {
    bytes(field, &parts.concat())
}

/// A Time or MicroTime. Go writes both numbers, also when they are 0.
pub fn time<Z: TimeZone>(field: u64, stamp: DateTime<Z>) -> Vec<u8> {
    message(
        field,
        &[
            number(1, stamp.timestamp()),
            number(2, i64::from(stamp.timestamp_subsec_nanos())),
        ],
    )
}

/// A whole body with one object: magic, then runtime.Unknown with typeMeta (1), raw (2),
/// contentEncoding (3) and contentType (4).
pub fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(object.len() + 64);
    body.extend_from_slice(MAGIC);
    push(
        &mut body,
        1,
        &[text(1, api_version), text(2, kind)].concat(),
    );
    push(&mut body, 2, object);
    body.extend([text(3, ""), text(4, "")].concat());
    body
}
