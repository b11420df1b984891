//! Answers: their heads and bodies, and how faults spoil them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use futures::{Stream, StreamExt, TryStreamExt};
use http::{Response, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use crate::{
    object::merge,
    protobuf,
    resource::Resource,
    status::{self, ApiError},
};

pub(crate) const JSON: &str = "application/json";

/// The body of an answer.
pub type Wire = UnsyncBoxBody<Bytes, Closed>;

pub(crate) type Reply = Response<Wire>;

/// Ends the connection without more words.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
pub struct Closed;

/// A body that is there at once.
pub(crate) fn full(body: impl Into<Bytes>) -> Wire {
    let body = Full::new(body.into());
    body.map_err(|never| match never {}).boxed_unsync()
}

fn streamed(pieces: impl Stream<Item = Result<Bytes, Closed>> + Send + 'static) -> Wire {
    StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync()
}

/// An answer that is there at once, whose length is said beforehand.
pub(crate) fn whole(code: u16, media_type: &str, body: impl Into<Bytes>) -> Reply {
    let head = Response::builder().status(code);
    let head = head.header(header::CONTENT_TYPE, media_type);
    head.body(full(body)).expect("an HTTP status")
}

pub(crate) fn json(code: u16, value: &Value) -> Reply {
    whole(code, JSON, value.to_string())
}

/// What is no path of the API.
pub(crate) fn no_page() -> Reply {
    whole(404, "text/plain; charset=utf-8", "404 page not found\n")
}

pub(crate) fn pieces(
    media_type: &str,
    pieces: impl Stream<Item = Bytes> + Send + 'static,
) -> Reply {
    let head = Response::builder().header(header::CONTENT_TYPE, media_type);
    let body = streamed(pieces.map(Ok));
    head.body(body).expect("a media type")
}

pub(crate) fn error(error: &ApiError, in_protobuf: bool) -> Reply {
    let status = status::body(error);
    match in_protobuf {
        true => whole(
            error.code,
            protobuf::MEDIA_TYPE,
            protobuf::status_body(&status),
        ),
        false => json(error.code, &status),
    }
}

pub(crate) fn list<'a>(
    resource: &Resource,
    metadata: &Value,
    items: impl Iterator<Item = &'a Arc<Value>>,
) -> Reply {
    let item = |item: &Arc<Value>| {
        let mut item = Value::clone(item);
        if !resource.custom {
            // Built-in kinds do not repeat their type.
            merge(&mut item, &json!({"apiVersion": null, "kind": null}));
        }
        item
    };
    let (version, kind) = (&resource.api_version, format!("{}List", resource.kind));
    let items: Vec<_> = items.map(item).collect();
    let list = json!({"kind": kind, "apiVersion": version, "metadata": metadata, "items": items});
    json(200, &list)
}

/// A list of messages in protobuf.
pub(crate) fn messages(
    resource: &Resource,
    metadata: &Value,
    items: impl IntoIterator<Item = Bytes>,
) -> Reply {
    let body = protobuf::list_body(resource, metadata, items);
    whole(200, protobuf::MEDIA_TYPE, body)
}

/// In pieces of this size, with a pause before each.
pub(crate) fn in_pieces(body: Wire, bytes: usize, pause: Duration) -> Wire {
    let split = move |body: Bytes| {
        let pieces = body.chunks(bytes).map(|piece| Ok(body.slice_ref(piece)));
        stream::iter(pieces.collect::<Vec<_>>())
    };
    let later = move |piece| async move {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        piece
    };
    let pieces = body.into_data_stream().map_ok(split).try_flatten();
    streamed(pieces.then(later))
}

/// Half of it; then the connection ends.
pub(crate) fn half(body: Wire) -> Wire {
    let half = |body: Bytes| stream::iter([Ok(body.slice(..body.len() / 2)), Err(Closed)]);
    streamed(body.into_data_stream().map_ok(half).try_flatten())
}

/// A message with a field that has no end and that nobody reads.
pub(crate) fn endless() -> Reply {
    let spaces = stream::repeat(Bytes::from_static(&[b' '; 1 << 16]));
    let body = stream::iter([protobuf::unread(usize::MAX >> 1)]).chain(spaces);
    pieces(protobuf::MEDIA_TYPE, body)
}
