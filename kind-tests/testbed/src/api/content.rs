//! Bodies of requests.

use std::fmt::Display;

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt, Limited, combinators::UnsyncBoxBody};
use hyper::body::Body;
use serde_json::Value;

use crate::api::status::{ApiError, bad_request, of_code};

/// The largest request body; a real server takes about 3 MiB.
const BODY_LIMIT: usize = 3 * 1024 * 1024;
/// What a body is that does not say so.
pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// The body of a request, whatever way it came, and why it cannot be read.
pub(crate) type Sent = UnsyncBoxBody<Bytes, String>;

pub(crate) fn sent<B>(body: B) -> Sent
where
    B: Body<Data = Bytes, Error: Display> + Send + 'static,
{
    body.map_err(|error| error.to_string()).boxed_unsync()
}

/// A body of this media type as JSON; an empty one is null.
pub(crate) async fn read_json(
    headers: &HeaderMap,
    wanted: &str,
    body: Sent,
) -> Result<Value, ApiError> {
    let given = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or(JSON);
    let given = given.split(';').next().unwrap_or_default().trim();
    if given != wanted {
        let what = format!("the body of the request was in an unknown format ({given})");
        return Err(of_code(
            415,
            format!("{what} - accepted media types include: {wanted}"),
        ));
    }
    let bytes = Limited::new(body, BODY_LIMIT)
        .collect()
        .await
        .map_err(|error| of_code(413, error.to_string()))?
        .to_bytes();
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| bad_request(format!("the body of the request is no JSON: {error}")))
}
