//! Answers: content negotiation, bodies, and how faults spoil them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use futures::{Stream, StreamExt, TryStreamExt};
use http::{HeaderMap, Response, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use crate::{
    list_page::ListPage,
    object::StoredObject,
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

/// Whether a client takes protobuf, in which it is then answered a list of a kind that has that form.
pub(crate) fn accepts_protobuf(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains(protobuf::MEDIA_TYPE))
}

/// A body that is there at once.
pub(crate) fn full(body: impl Into<Bytes>) -> Wire {
    let body = Full::new(body.into());
    body.map_err(|never| match never {}).boxed_unsync()
}

fn streamed(pieces: impl Stream<Item = Result<Bytes, Closed>> + Send + 'static) -> Wire {
    StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync()
}

/// An answer whose length is said beforehand.
pub(crate) fn whole(code: u16, media_type: &str, body: impl Into<Bytes>) -> Reply {
    let body = body.into();
    let head = Response::builder()
        .status(code)
        .header(header::CONTENT_TYPE, media_type)
        .header(header::CONTENT_LENGTH, body.len());
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
    match in_protobuf {
        true => whole(
            error.code,
            protobuf::MEDIA_TYPE,
            protobuf::status_body(error),
        ),
        false => json(error.code, &status::body(error)),
    }
}

pub(crate) fn object(code: u16, object: &StoredObject) -> Reply {
    whole(code, JSON, object.json())
}

pub(crate) fn list(
    resource: &Resource,
    page: ListPage<Arc<StoredObject>>,
    in_protobuf: bool,
) -> Reply {
    if in_protobuf && protobuf::speaks(resource) {
        return messages(resource, &page.map(|object| object.protobuf().clone()));
    }
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some((token, left)) = &page.rest {
        (metadata["continue"], metadata["remainingItemCount"]) = (json!(token), json!(left));
    }
    let (version, kind) = (resource.api_version(), &resource.kind);
    let head = format!(
        r#"{{"kind":"{kind}List","apiVersion":"{version}","metadata":{metadata},"items":["#
    );
    let items = page.map(|object| object.list_item()).items.join(&b',');
    whole(200, JSON, [head.as_bytes(), &items, b"]}"].concat())
}

/// A list of messages in protobuf.
pub(crate) fn messages(resource: &Resource, page: &ListPage<Bytes>) -> Reply {
    whole(
        200,
        protobuf::MEDIA_TYPE,
        protobuf::list_body(resource, page),
    )
}

/// In pieces of this size.
pub(crate) fn in_pieces(body: Wire, bytes: usize) -> Wire {
    let split = move |mut body: Bytes| {
        let next = move || {
            let piece = body.split_to(body.len().min(bytes.max(1)));
            (!piece.is_empty()).then_some(Ok(piece))
        };
        stream::iter(std::iter::from_fn(next))
    };
    streamed(body.into_data_stream().map_ok(split).try_flatten())
}

/// With a pause before each piece.
pub(crate) fn slowly(body: Wire, pause: Duration) -> Wire {
    let later = move |piece| async move {
        tokio::time::sleep(pause).await;
        piece
    };
    streamed(body.into_data_stream().then(later))
}

/// Half of it; then the connection ends.
pub(crate) fn half(body: Wire) -> Wire {
    let half = |body: Bytes| stream::iter([Ok(body.slice(..body.len() / 2)), Err(Closed)]);
    streamed(body.into_data_stream().map_ok(half).try_flatten())
}

/// A body without end.
pub(crate) fn endless(in_protobuf: bool, bytes: usize, pause: Duration) -> Reply {
    let (media_type, head) = unread(in_protobuf, usize::MAX >> 1);
    let spaces = stream::repeat(Bytes::from(vec![b' '; bytes.max(1)]));
    let endless = pieces(media_type, stream::iter([head]).chain(spaces));
    endless.map(|body| slowly(body, pause))
}

/// A body of so many bytes, and a little more.
pub(crate) fn oversized(in_protobuf: bool, bytes: usize) -> Reply {
    let (media_type, head) = unread(in_protobuf, bytes);
    whole(200, media_type, [&head, &*vec![b' '; bytes]].concat())
}

/// What begins a body of so many bytes that nobody reads.
fn unread(in_protobuf: bool, bytes: usize) -> (&'static str, Bytes) {
    match in_protobuf {
        true => (protobuf::MEDIA_TYPE, protobuf::unread(bytes)),
        false => (JSON, Bytes::new()),
    }
}
