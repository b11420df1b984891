//! What all bodies have in common, for other servers, too.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

/// A moment; also a MicroTime.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Timestamp {
    /// Since 1970, in UTC.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// The fraction of a second.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// What a list says of itself.
#[derive(Clone, PartialEq, Message)]
pub struct ListMeta {
    /// The version at which it was read.
    #[prost(string, tag = "2")]
    pub resource_version: String,
    /// How to ask for the next page; empty on the last one.
    #[prost(string, tag = "3")]
    pub r#continue: String,
    /// How many objects are behind this page.
    #[prost(int64, optional, tag = "4")]
    pub remaining_item_count: Option<i64>,
}

/// A whole body with one message.
pub fn envelope(api_version: impl Into<String>, kind: impl Into<String>, raw: impl Into<Bytes>) -> Bytes {
    let type_meta = Some(TypeMeta { api_version: api_version.into(), kind: kind.into() });
    let unknown = Unknown { type_meta, raw: raw.into() };
    let mut body = BytesMut::with_capacity(MAGIC.len() + unknown.encoded_len());
    body.put_slice(MAGIC);
    unknown.encode(&mut body).expect("the buffer grows");
    body.freeze()
}

/// The message in a body; none when it has none.
pub fn unwrapped(body: &[u8]) -> Option<Bytes> {
    Some(Unknown::decode(body.strip_prefix(MAGIC)?).ok()?.raw)
}
