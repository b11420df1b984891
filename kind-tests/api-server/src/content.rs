//! Bodies of requests.

use std::fmt::Display;

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use serde_json::Value;

use crate::status::{ApiError, bad_request, of_code};

/// The largest request body; a real server takes about 3 MiB.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// The media type of a body that names none.
pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// The body of a request, or why it cannot be read.
pub(crate) type Received = Result<Bytes, String>;

/// Reads the body of a request.
pub(crate) async fn receive<B>(request: Request<B>) -> Request<Received>
where
    B: Body<Data = Bytes, Error: Display> + Send + 'static,
{
    let (head, body) = request.into_parts();
    let body = body.map_err(|error| error.to_string());
    let received = Limited::new(body, BODY_LIMIT).collect().await;
    let received = received.map(|body| body.to_bytes());
    Request::from_parts(head, received.map_err(|error| error.to_string()))
}

/// A body of this media type as JSON; an empty one is null.
pub(crate) fn read_json(
    headers: &HeaderMap,
    wanted: &str,
    body: Received,
) -> Result<Value, ApiError> {
    let given = headers.get(header::CONTENT_TYPE);
    let given = given.and_then(|value| value.to_str().ok()).unwrap_or(JSON);
    let given = given.split(';').next().unwrap_or_default().trim();
    if given != wanted {
        return Err(of_code(
            415,
            format!(
                "the body of the request was in an unknown format ({given}) - accepted media types include: {wanted}"
            ),
        ));
    }
    let bytes = body.map_err(|error| of_code(413, error))?;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| bad_request(format!("the body of the request is no JSON: {error}")))
}
