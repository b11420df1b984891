//! One request and its answer.

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, header};
use serde_json::{Value, json};

use super::expectation::{Names, check, filled};
use crate::content::{JSON, MERGE_PATCH};

/// What happens to the server before a request.
#[derive(Clone, Copy)]
pub(super) enum Before {
    Compacted,
    Rejecting,
}

#[derive(Clone)]
pub(super) struct Row {
    pub before: Option<Before>,
    pub user: Option<&'static str>,
    pub method: &'static str,
    pub path: String,
    media_type: &'static str,
    body: Value,
    code: u16,
    retry_after: Option<&'static str>,
    expected: Value,
}

impl Row {
    fn new(method: &'static str, path: &str, body: Value) -> Self {
        Self {
            before: None,
            user: None,
            method,
            path: path.to_owned(),
            media_type: JSON,
            body,
            code: 200,
            retry_after: None,
            expected: json!({}),
        }
    }

    pub fn get(path: &str) -> Self {
        Self::new("GET", path, Value::Null)
    }

    /// Creates an object, which is answered.
    pub fn post(path: &str, body: Value) -> Self {
        Self::new("POST", path, body).code(201)
    }

    pub fn put(path: &str, body: Value) -> Self {
        Self::new("PUT", path, body)
    }

    pub fn patch(path: &str, body: Value) -> Self {
        Self {
            media_type: MERGE_PATCH,
            ..Self::new("PATCH", path, body)
        }
    }

    pub fn delete(path: &str, body: Value) -> Self {
        Self::new("DELETE", path, body)
    }

    pub fn once(mut self, before: Before) -> Self {
        self.before = Some(before);
        self
    }

    pub fn by(mut self, user: impl Into<Option<&'static str>>) -> Self {
        self.user = user.into();
        self
    }

    pub fn sent_as(mut self, media_type: &'static str) -> Self {
        self.media_type = media_type;
        self
    }

    pub fn code(mut self, code: u16) -> Self {
        self.code = code;
        self
    }

    pub fn retry_after(mut self, seconds: &'static str) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Answered with this, too.
    pub fn is(mut self, expected: Value) -> Self {
        match (&mut self.expected, expected) {
            (Value::Object(known), Value::Object(more)) => known.extend(more),
            (known, other) => *known = other,
        }
        self
    }

    /// Refused with a Status.
    pub fn fails(self, code: u16, reason: &str, message: &str) -> Self {
        self.code(code).is(
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
            "reason": reason, "message": message}),
        )
    }

    pub fn request(&self, known: &Names) -> Result<Request<Vec<u8>>> {
        let body = match &self.body {
            Value::Null => String::new(),
            body => filled(&body.to_string(), known),
        };
        let request = Request::builder()
            .method(self.method)
            .uri(filled(&self.path, known))
            .header(header::CONTENT_TYPE, self.media_type);
        Ok(request.body(body.into_bytes())?)
    }

    /// Compares an answer with what is expected.
    ///
    /// # Errors
    /// What is different.
    pub fn check(&self, answer: &Response<Bytes>, known: &mut Names) -> Result<(), String> {
        let text = String::from_utf8_lossy(answer.body());
        let code = answer.status().as_u16();
        if code != self.code {
            return Err(format!("{code}, not {}: {text}", self.code));
        }
        let retry_after = answer.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok());
        if retry_after != self.retry_after {
            return Err(format!(
                "Retry-After {retry_after:?}, not {:?}",
                self.retry_after
            ));
        }
        let body = if self.path.contains("watch=true") {
            text.lines().map(read).collect()
        } else {
            read(&text)
        };
        check(&self.expected, &body, known, "")
    }
}

/// JSON, or the text as it is.
fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}
