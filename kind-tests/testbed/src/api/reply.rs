//! Answers: content negotiation, bodies, and how faults spoil them.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, Response, header};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;

use crate::api::{
    object::{Form, Object, write_json},
    protobuf,
    resource::Resource,
    status::ApiError,
    store::List,
};

/// The body of an answer.
pub type Wire = UnsyncBoxBody<Bytes, Closed>;

/// Ends the connection without more words.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
pub struct Closed;

const JSON: &str = "application/json";

/// An answer before it meets the wire.
pub(crate) struct Reply {
    pub code: u16,
    pub content_type: &'static str,
    pub retry_after: Option<u32>,
    pub body: Body,
}

/// Whole or piece by piece.
pub(crate) enum Body {
    Whole(Bytes),
    Pieces(stream::BoxStream<'static, Bytes>),
}

/// What a client accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Accepted {
    pub protobuf: bool,
    pub form: Form,
}

impl Accepted {
    /// Reads the Accept header; the highest q wins, of equal ones the first.
    pub fn parse(headers: &HeaderMap, json_only: bool) -> Result<Self, ApiError> {
        let text = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
        let mut best: Option<(f32, Self)> = None;
        for entry in text.split(',') {
            let mut parts = entry.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let (mut q, mut form) = (1.0_f32, Some(Form::Full));
            for (key, value) in parts.filter_map(|part| part.split_once('=')) {
                match (key, value) {
                    ("q", value) => q = value.parse().unwrap_or(0.0),
                    ("as", "PartialObjectMetadata" | "PartialObjectMetadataList") => form = Some(Form::Metadata),
                    ("as", _) => form = None,
                    _ => {}
                }
            }
            let is_protobuf = media == protobuf::MEDIA_TYPE;
            let known = matches!(media, JSON | "*/*" | "application/*" | "") || (is_protobuf && !json_only);
            // Metadata alone is offered as JSON only.
            let Some(form) = form.filter(|form| known && !(is_protobuf && *form == Form::Metadata)) else {
                continue;
            };
            if q > 0.0 && best.as_ref().is_none_or(|(highest, _)| q > *highest) {
                best = Some((q, Self { protobuf: is_protobuf, form }));
            }
        }
        best.map(|(_, accepted)| accepted).ok_or_else(|| {
            ApiError::of_code(
                406,
                "only the following media types are accepted: application/json, application/vnd.kubernetes.protobuf",
            )
        })
    }
}

impl Reply {
    pub fn json(code: u16, value: &serde_json::Value) -> Self {
        let mut text = Vec::with_capacity(256);
        write_json(&mut text, value);
        Self::whole(code, JSON, text.into())
    }

    pub fn whole(code: u16, content_type: &'static str, body: Bytes) -> Self {
        Self { code, content_type, retry_after: None, body: Body::Whole(body) }
    }

    pub fn text(text: &'static str) -> Self {
        Self::whole(200, "text/plain; charset=utf-8", text.into())
    }

    pub fn pieces(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { code: 200, content_type: JSON, retry_after: None, body: Body::Pieces(pieces.boxed()) }
    }

    pub fn object(code: u16, object: &Object, accepted: Accepted) -> Self {
        if accepted.protobuf
            && let Some(message) = object.protobuf()
        {
            return Self::whole(code, protobuf::MEDIA_TYPE, protobuf::object_body(&object.resource, message));
        }
        let mut text = Vec::with_capacity(512);
        object.write_json(&mut text, accepted.form);
        Self::whole(code, JSON, text.into())
    }

    pub fn list(resource: &Resource, list: &List, accepted: Accepted) -> Self {
        let rest = list.rest.as_ref().map(|(token, count)| (token.as_str(), *count));
        if accepted.protobuf && protobuf::speaks(resource) {
            let items: Vec<Bytes> = list.items.iter().filter_map(|item| item.protobuf().cloned()).collect();
            return Self::whole(200, protobuf::MEDIA_TYPE, protobuf::list_body(resource, list.revision, rest, &items));
        }
        let (version, kind) = match accepted.form {
            Form::Full => (resource.api_version(), format!("{}List", resource.kind)),
            Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned()),
        };
        let mut text = Vec::with_capacity(512 * (list.items.len() + 1));
        let revision = list.revision;
        let head = format!(r#"{{"kind":"{kind}","apiVersion":"{version}","metadata":{{"resourceVersion":"{revision}""#);
        text.extend_from_slice(head.as_bytes());
        if let Some((token, count)) = rest {
            text.extend_from_slice(format!(r#","continue":"{token}","remainingItemCount":{count}"#).as_bytes());
        }
        text.extend_from_slice(br#"},"items":["#);
        for (at, item) in list.items.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            item.write_json_item(&mut text, accepted.form);
        }
        text.extend_from_slice(b"]}");
        Self::whole(200, JSON, text.into())
    }

    pub fn error(error: &ApiError, accepted: Option<Accepted>) -> Self {
        let reply = if accepted.is_some_and(|accepted| accepted.protobuf) {
            Self::whole(error.code, protobuf::MEDIA_TYPE, protobuf::status_body(error))
        } else {
            Self::json(error.code, &error.body())
        };
        let seconds = error.details.retry_after_seconds;
        Self { retry_after: (seconds > 0).then_some(seconds), ..reply }
    }

    /// The same without a length, in chunks of so many bytes.
    pub fn in_chunks(mut self, bytes: usize) -> Self {
        if let Body::Whole(mut rest) = self.body {
            let mut chunks = Vec::with_capacity(rest.len() / bytes + 1);
            while !rest.is_empty() {
                chunks.push(rest.split_to(bytes.min(rest.len())));
            }
            self.body = Body::Pieces(stream::iter(chunks).boxed());
        }
        self
    }

    /// As it should be.
    pub fn send(self) -> Response<Wire> {
        let mut response = match self.body {
            Body::Whole(body) => {
                let length = body.len();
                let mut response = Response::new(Full::new(body).map_err(|never: Infallible| match never {}).boxed_unsync());
                response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
                response
            }
            Body::Pieces(pieces) => Response::new(wire(pieces.map(Ok))),
        };
        *response.status_mut() = http::StatusCode::from_u16(self.code).unwrap_or_default();
        response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(self.content_type));
        response.headers_mut().insert(header::CACHE_CONTROL, http::HeaderValue::from_static("no-cache, private"));
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }

    /// Half of it, under the head of the whole; then the connection ends.
    pub fn send_half(self) -> Response<Wire> {
        let whole = match &self.body {
            Body::Whole(body) => body.clone(),
            Body::Pieces(_) => Bytes::new(),
        };
        let mut response = self.send();
        let half = stream::iter([Ok(whole.slice(..whole.len() / 2)), Err(Closed)]);
        *response.body_mut() = wire(half);
        response
    }

    /// All of it, slowly.
    pub fn send_slowly(self, bytes: usize, pause: Duration) -> Response<Wire> {
        let Body::Whole(whole) = &self.body else {
            return self.send();
        };
        let whole = whole.clone();
        let mut response = self.send();
        let pieces = stream::unfold(whole, move |mut rest| async move {
            if rest.is_empty() {
                return None;
            }
            tokio::time::sleep(pause).await;
            let piece = rest.split_to(bytes.clamp(1, rest.len()));
            Some((Ok(piece), rest))
        });
        *response.body_mut() = wire(pieces);
        response
    }
}

/// Spaces without end.
pub(crate) fn endless(bytes: usize, pause: Duration) -> Reply {
    let piece = Bytes::from(vec![b' '; bytes.max(1)]);
    Reply::pieces(stream::unfold(piece, move |piece| async move {
        tokio::time::sleep(pause).await;
        Some((piece.clone(), piece))
    }))
}

fn wire(pieces: impl Stream<Item = Result<Bytes, Closed>> + Send + 'static) -> Wire {
    StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(text: &'static str, json_only: bool) -> Option<(bool, Form)> {
        let headers = HeaderMap::from_iter([(header::ACCEPT, http::HeaderValue::from_static(text))]);
        Accepted::parse(&headers, json_only).ok().map(|accepted| (accepted.protobuf, accepted.form))
    }

    #[test]
    fn the_best_accepted_type_wins() {
        let both = "application/vnd.kubernetes.protobuf,application/json;q=0.9";
        assert_eq!(accepted(both, false), Some((true, Form::Full)));
        assert_eq!(accepted(both, true), Some((false, Form::Full)));
        assert_eq!(accepted("application/json, application/vnd.kubernetes.protobuf;q=0.5", false), Some((false, Form::Full)));
        assert_eq!(accepted("application/json;q=0.1,application/vnd.kubernetes.protobuf;q=0.5", false), Some((true, Form::Full)));
        assert_eq!(accepted("*/*", false), Some((false, Form::Full)));
        let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(accepted(metadata, false), Some((false, Form::Metadata)));
        assert_eq!(accepted("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", false), Some((false, Form::Full)));
        assert_eq!(accepted("text/html", false), None);
        assert_eq!(accepted("application/vnd.kubernetes.protobuf", true), None);
    }
}
