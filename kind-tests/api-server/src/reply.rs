//! Answers: content negotiation, bodies, and how faults spoil them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use crate::{
    content::JSON,
    list_page::ListPage,
    object::StoredObject,
    protobuf,
    resource::Resource,
    status::{self, ApiError, of_code},
};

/// The body of an answer.
pub type Wire = UnsyncBoxBody<Bytes, Closed>;

/// Ends the connection without more words.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
pub struct Closed;

/// What is answered, in whatever form.
pub(crate) enum ApiAnswer {
    Json(u16, Value),
    /// The answer of a pod.
    Whole(u16, Bytes),
    /// Another protocol from now on.
    Switched(HeaderMap),
    /// What is no path of the API.
    NoPage,
    Object(u16, Arc<StoredObject>),
    List(Arc<Resource>, ListPage<Arc<StoredObject>>),
    /// A list of messages in protobuf, the only form it is offered in.
    Messages(Arc<Resource>, ListPage<Bytes>),
    Watch(BoxStream<'static, Bytes>),
}

/// An answer before it meets the wire.
pub(crate) struct ApiReply {
    pub code: u16,
    pub headers: HeaderMap,
    /// Of the whole body, where it is said beforehand.
    pub length: Option<usize>,
    pub body: BoxStream<'static, Result<Bytes, Closed>>,
}

/// Whether a client takes protobuf, which it is answered in then, where a kind has that form.
pub(crate) fn accepts_protobuf(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains(protobuf::MEDIA_TYPE))
}

impl ApiReply {
    pub fn of(answer: Result<ApiAnswer, ApiError>, in_protobuf: bool) -> Self {
        let protobuf = |code, body| Self::whole(code, protobuf::MEDIA_TYPE, body);
        match answer {
            Ok(ApiAnswer::Json(code, value)) => Self::json(code, &value),
            Ok(ApiAnswer::Whole(code, body)) => Self::whole(code, JSON, body),
            Ok(ApiAnswer::Switched(headers)) => Self {
                headers,
                length: None,
                ..Self::whole(101, JSON, Bytes::new())
            },
            Ok(ApiAnswer::NoPage) => {
                let text = Bytes::from_static(b"404 page not found\n");
                Self::whole(404, "text/plain; charset=utf-8", text)
            }
            Ok(ApiAnswer::Object(code, object)) => match object.protobuf() {
                Some(message) if in_protobuf => {
                    protobuf(code, protobuf::object_body(&object.resource, message))
                }
                _ => Self::whole(code, JSON, object.json()),
            },
            Ok(ApiAnswer::List(resource, page)) if in_protobuf && protobuf::speaks(&resource) => {
                let page = page.map(|object| object.protobuf().cloned().unwrap_or_default());
                protobuf(200, protobuf::list_body(&resource, &page))
            }
            Ok(ApiAnswer::List(resource, page)) => {
                Self::whole(200, JSON, list_json(&resource, page))
            }
            Ok(ApiAnswer::Messages(resource, page)) if in_protobuf => {
                protobuf(200, protobuf::list_body(&resource, &page))
            }
            Ok(ApiAnswer::Messages(..)) => {
                let error = of_code(406, "a computed list is offered in protobuf only");
                Self::error(&error, false)
            }
            Ok(ApiAnswer::Watch(lines)) => Self::pieces(lines),
            Err(error) => Self::error(&error, in_protobuf),
        }
    }

    pub fn error(error: &ApiError, in_protobuf: bool) -> Self {
        let mut reply = if in_protobuf {
            let body = protobuf::status_body(error);
            Self::whole(error.code, protobuf::MEDIA_TYPE, body)
        } else {
            Self::json(error.code, &status::body(error))
        };
        if let Some(details) = error
            .details
            .as_ref()
            .filter(|it| it.retry_after_seconds > 0)
        {
            let seconds = details.retry_after_seconds.into();
            reply.headers.insert(header::RETRY_AFTER, seconds);
        }
        reply
    }

    pub fn json(code: u16, value: &Value) -> Self {
        Self::whole(code, JSON, value.to_string().into())
    }

    pub fn whole(code: u16, content_type: &'static str, body: Bytes) -> Self {
        let content_type = HeaderValue::from_static(content_type);
        Self {
            code,
            headers: HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]),
            length: None,
            body: stream::empty().boxed(),
        }
        .with_body(body)
    }

    pub fn pieces(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self {
            length: None,
            body: pieces.map(Ok).boxed(),
            ..Self::whole(200, JSON, Bytes::new())
        }
    }

    /// With another body.
    pub fn with_body(self, body: Bytes) -> Self {
        Self {
            length: Some(body.len()),
            body: stream::iter([Ok(body)]).boxed(),
            ..self
        }
    }

    /// With these headers, names and values.
    pub fn with_headers(mut self, headers: Vec<(String, String)>) -> Self {
        for (name, value) in headers {
            let name = HeaderName::try_from(name).expect("the name of a header");
            let value = value.try_into().expect("the value of a header");
            self.headers.insert(name, value);
        }
        self
    }

    /// In pieces of this size.
    pub fn in_pieces(mut self, bytes: usize) -> Self {
        let split = move |mut body: Bytes| {
            let next = move || {
                let piece = body.split_to(body.len().min(bytes.max(1)));
                (!piece.is_empty()).then_some(Ok(piece))
            };
            stream::iter(std::iter::from_fn(next))
        };
        self.body = self.body.map_ok(split).try_flatten().boxed();
        self
    }

    /// With a pause before each piece.
    pub fn slowly(mut self, pause: Duration) -> Self {
        let later = move |piece| async move {
            tokio::time::sleep(pause).await;
            piece
        };
        self.body = self.body.then(later).boxed();
        self
    }

    /// Half of it, under the head of the whole; then the connection ends.
    pub fn half(mut self) -> Self {
        let half = |body: Bytes| stream::iter([Ok(body.slice(..body.len() / 2)), Err(Closed)]);
        self.body = self.body.map_ok(half).try_flatten().boxed();
        self
    }

    pub fn send(mut self) -> Response<Wire> {
        if let Some(length) = self.length {
            self.headers.insert(header::CONTENT_LENGTH, length.into());
        }
        let body = StreamBody::new(self.body.map_ok(Frame::data)).boxed_unsync();
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(self.code).expect("an HTTP status");
        *response.headers_mut() = self.headers;
        response
    }
}

fn list_json(resource: &Resource, page: ListPage<Arc<StoredObject>>) -> Bytes {
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some((token, left)) = &page.rest {
        (metadata["continue"], metadata["remainingItemCount"]) = (json!(token), json!(left));
    }
    let (version, kind) = (resource.api_version(), &resource.kind);
    let head = format!(
        r#"{{"kind":"{kind}List","apiVersion":"{version}","metadata":{metadata},"items":["#
    );
    let items = page.map(|object| object.list_item()).items.join(&b',');
    [head.as_bytes(), &items, b"]}"].concat().into()
}

/// A body without end.
pub(crate) fn endless(in_protobuf: bool, bytes: usize, pause: Duration) -> ApiReply {
    let piece = Bytes::from(vec![b' '; bytes.max(1)]);
    let (media_type, head) = if in_protobuf {
        (protobuf::MEDIA_TYPE, protobuf::unread(usize::MAX >> 1))
    } else {
        (JSON, Bytes::new())
    };
    let pieces = stream::iter([head]).chain(stream::repeat(piece));
    ApiReply {
        length: None,
        body: pieces.map(Ok).boxed(),
        ..ApiReply::whole(200, media_type, Bytes::new())
    }
    .slowly(pause)
}

/// A body of so many bytes, and a little more.
pub(crate) fn oversized(in_protobuf: bool, bytes: usize) -> ApiReply {
    let filler = vec![b'x'; bytes];
    if in_protobuf {
        let body = [&*protobuf::unread(bytes), &filler].concat();
        ApiReply::whole(200, protobuf::MEDIA_TYPE, body.into())
    } else {
        let filler = String::from_utf8_lossy(&filler);
        ApiReply::json(200, &json!({"kind": "List", "filler": filler}))
    }
}
