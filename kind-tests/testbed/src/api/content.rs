//! Bodies of requests.

use std::fmt::Display;

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt, Limited, combinators::UnsyncBoxBody};
use hyper::body::Body;
use serde_json::Value;

use crate::api::status::ApiError;

/// The largest request body; a real server takes about 3 MiB.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The body of a request, whatever way it came, and why it cannot be read.
pub(crate) type Sent = UnsyncBoxBody<Bytes, String>;

pub(crate) fn sent<B>(body: B) -> Sent
where
    B: Body<Data = Bytes, Error: Display> + Send + 'static,
{
    body.map_err(|error| error.to_string()).boxed_unsync()
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

pub(crate) fn json_content(headers: &HeaderMap) -> Result<(), ApiError> {
    if content_type(headers).is_empty() { Ok(()) } else { must_be("application/json", headers) }
}

pub(crate) fn patch_content(headers: &HeaderMap) -> Result<(), ApiError> {
    must_be("application/merge-patch+json", headers)
}

fn must_be(wanted: &str, headers: &HeaderMap) -> Result<(), ApiError> {
    let given = content_type(headers);
    let message =
        || format!("the body of the request was in an unknown format ({given}) - accepted media types include: {wanted}");
    if given == wanted { Ok(()) } else { Err(ApiError::of_code(415, message())) }
}

/// A body as JSON; an empty one is null.
pub(crate) async fn read_json(body: Sent) -> Result<Value, ApiError> {
    let bytes =
        Limited::new(body, BODY_LIMIT).collect().await.map_err(|error| ApiError::of_code(413, error.to_string()))?.to_bytes();
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&bytes).map_err(|error| ApiError::bad_request(format!("the body of the request is no JSON: {error}")))
}
