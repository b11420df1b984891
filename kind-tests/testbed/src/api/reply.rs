//! Answers: content negotiation, bodies, and how faults spoil them.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;

use crate::api::{
    content::JSON,
    object::Object,
    protobuf,
    resource::Resource,
    status::{self, ApiError, of_code},
    store::List,
};

/// The body of an answer.
pub type Wire = UnsyncBoxBody<Bytes, Closed>;

/// Ends the connection without more words.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
pub struct Closed;

/// An answer before it meets the wire.
pub(crate) struct Reply {
    pub code: u16,
    pub headers: HeaderMap,
    /// Of the whole body, where it is said beforehand.
    pub length: Option<usize>,
    pub body: BoxStream<'static, Result<Bytes, Closed>>,
}

/// Whether a client is answered in protobuf, where a kind has that form, by its Accept header: the
/// highest q wins, of equal ones the first.
pub(crate) fn accepts_protobuf(headers: &HeaderMap, json_only: bool) -> Result<bool, ApiError> {
    let text = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("*/*");
    let offered = text
        .split(',')
        .filter_map(|entry| offered(entry, json_only));
    let best = offered.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, in_protobuf)| in_protobuf).ok_or_else(|| {
        of_code(
            406,
            format!(
                "only the following media types are accepted: {JSON}, {}",
                protobuf::MEDIA_TYPE
            ),
        )
    })
}

/// The q of an entry that is offered, and whether it is protobuf.
fn offered(entry: &str, json_only: bool) -> Option<(f32, bool)> {
    let mut parts = entry.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let parameters: HashMap<_, _> = parts.filter_map(|part| part.split_once('=')).collect();
    let q = parameters
        .get("q")
        .map_or(1.0, |q| q.parse().unwrap_or(0.0));
    let in_protobuf = media == protobuf::MEDIA_TYPE;
    let known = if in_protobuf {
        !json_only
    } else {
        [JSON, "*/*", "application/*", ""].contains(&media)
    };
    // Other forms of an object, such as tables, are not offered.
    (known && q > 0.0 && !parameters.contains_key("as")).then_some((q, in_protobuf))
}

impl Reply {
    pub fn json(code: u16, value: &serde_json::Value) -> Self {
        Self::whole(code, JSON, value.to_string().into())
    }

    pub fn whole(code: u16, content_type: &'static str, body: Bytes) -> Self {
        let headers =
            HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        Self {
            code,
            headers,
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

    /// The same with another body.
    pub fn with_body(self, body: Bytes) -> Self {
        Self {
            length: Some(body.len()),
            body: stream::iter([Ok(body)]).boxed(),
            ..self
        }
    }

    /// The same with these headers, names and values.
    pub fn with_headers(mut self, headers: Vec<(String, String)>) -> Self {
        for (name, value) in headers {
            let name = HeaderName::try_from(name).expect("the name of a header");
            self.headers
                .insert(name, value.try_into().expect("the value of a header"));
        }
        self
    }

    pub fn object(code: u16, object: &Object, in_protobuf: bool) -> Self {
        if in_protobuf && let Some(message) = object.protobuf() {
            return Self::whole(
                code,
                protobuf::MEDIA_TYPE,
                protobuf::object_body(&object.resource, message),
            );
        }
        let mut text = Vec::with_capacity(512);
        object.write_json(&mut text);
        Self::whole(code, JSON, text.into())
    }

    pub fn list(resource: &Resource, list: &List, in_protobuf: bool) -> Self {
        let rest = list
            .rest
            .as_ref()
            .map(|(token, count)| (token.as_str(), *count));
        if in_protobuf && protobuf::speaks(resource) {
            let items: Vec<Bytes> = list
                .items
                .iter()
                .filter_map(|item| item.protobuf().cloned())
                .collect();
            return Self::whole(
                200,
                protobuf::MEDIA_TYPE,
                protobuf::list_body(resource, list.revision, rest, &items),
            );
        }
        let (version, kind) = (resource.api_version(), &resource.kind);
        let mut text = Vec::with_capacity(512 * (list.items.len() + 1));
        let revision = list.revision;
        let head = format!(
            r#"{{"kind":"{kind}List","apiVersion":"{version}","metadata":{{"resourceVersion":"{revision}""#
        );
        text.extend_from_slice(head.as_bytes());
        if let Some((token, count)) = rest {
            text.extend_from_slice(
                format!(r#","continue":"{token}","remainingItemCount":{count}"#).as_bytes(),
            );
        }
        text.extend_from_slice(br#"},"items":["#);
        for (at, item) in list.items.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            item.write_json_item(&mut text);
        }
        text.extend_from_slice(b"]}");
        Self::whole(200, JSON, text.into())
    }

    pub fn error(error: &ApiError, in_protobuf: bool) -> Self {
        let mut reply = if in_protobuf {
            Self::whole(
                error.code,
                protobuf::MEDIA_TYPE,
                protobuf::status_body(error),
            )
        } else {
            Self::json(error.code, &status::body(error))
        };
        let seconds = error
            .details
            .as_ref()
            .map_or(0, |details| details.retry_after_seconds);
        if seconds > 0 {
            reply.headers.insert(header::RETRY_AFTER, seconds.into());
        }
        reply
    }

    /// The same in pieces of so many bytes.
    pub fn in_pieces(self, bytes: usize) -> Self {
        let bytes = bytes.max(1);
        let split = move |body: Bytes| {
            let begins = (0..body.len()).step_by(bytes);
            stream::iter(begins.map(move |at| {
                Ok::<_, Closed>(body.slice(at..body.len().min(at.saturating_add(bytes))))
            }))
        };
        Self {
            body: self.body.map_ok(split).try_flatten().boxed(),
            ..self
        }
    }

    /// The same with a pause before each piece.
    pub fn slowly(self, pause: Duration) -> Self {
        let later = move |piece| async move {
            tokio::time::sleep(pause).await;
            piece
        };
        Self {
            body: self.body.then(later).boxed(),
            ..self
        }
    }

    /// Half of it, under the head of the whole; then the connection ends.
    pub fn half(self) -> Self {
        let half = |body: Bytes| stream::iter([Ok(body.slice(..body.len() / 2)), Err(Closed)]);
        Self {
            body: self.body.map_ok(half).try_flatten().boxed(),
            ..self
        }
    }

    pub fn send(self) -> Response<Wire> {
        let mut response =
            Response::new(StreamBody::new(self.body.map_ok(Frame::data)).boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(self.code).expect("an HTTP status");
        *response.headers_mut() = self.headers;
        if let Some(length) = self.length {
            response
                .headers_mut()
                .insert(header::CONTENT_LENGTH, length.into());
        }
        response
    }
}

/// Spaces without end.
pub(crate) fn endless(bytes: usize, pause: Duration) -> Reply {
    let piece = Bytes::from(vec![b' '; bytes.max(1)]);
    Reply::pieces(stream::repeat(piece)).slowly(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_accepted_type_wins() {
        let both = "application/vnd.kubernetes.protobuf,application/json;q=0.9";
        for (text, json_only, in_protobuf) in [
            (both, false, Some(true)),
            (both, true, Some(false)),
            (
                "application/json, application/vnd.kubernetes.protobuf;q=0.5",
                false,
                Some(false),
            ),
            (
                "application/json;q=0.1,application/vnd.kubernetes.protobuf;q=0.5",
                false,
                Some(true),
            ),
            ("*/*", false, Some(false)),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                false,
                Some(false),
            ),
            (
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                false,
                None,
            ),
            ("text/html", false, None),
            ("application/vnd.kubernetes.protobuf", true, None),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(text))]);
            assert_eq!(
                accepts_protobuf(&headers, json_only).ok(),
                in_protobuf,
                "{text}, {json_only}"
            );
        }
    }
}
