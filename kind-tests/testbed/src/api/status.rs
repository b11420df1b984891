//! Errors as the API tells them: v1 `Status` objects.

use serde_json::{Value, json};

use crate::api::resource::Resource;

/// An error of the API; [`ApiError::body`] is what goes over the wire.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{reason} ({code}): {message}")]
pub struct ApiError {
    /// HTTP status.
    pub code: u16,
    /// Machine-readable reason, for example `Conflict`; may be empty.
    pub reason: String,
    /// For people.
    pub message: String,
    /// What the error is about.
    pub details: Box<Details>,
}

/// What an error is about; empty fields are left out of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// Its API group.
    pub group: String,
    /// Its plural (the API calls this field `kind`).
    pub kind: String,
    /// Seconds after which to try again.
    pub retry_after_seconds: u32,
}

impl ApiError {
    /// An error without details.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), details: Box::default() }
    }

    /// An error with the reason that belongs to an HTTP status.
    pub fn of_code(code: u16, message: impl Into<String>) -> Self {
        let reason = match code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            405 => "MethodNotAllowed",
            406 => "NotAcceptable",
            409 => "Conflict",
            410 => "Expired",
            413 => "RequestEntityTooLarge",
            415 => "UnsupportedMediaType",
            422 => "Invalid",
            429 => "TooManyRequests",
            500 => "InternalError",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "",
        };
        Self::new(code, reason, message)
    }

    /// The same, about an object of a resource.
    #[must_use]
    pub fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details.name = name.to_owned();
        self.details.group.clone_from(&resource.group);
        self.details.kind.clone_from(&resource.plural);
        self
    }

    /// The same, asking to wait.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.retry_after_seconds = seconds;
        self
    }

    /// Nothing is served at this path.
    pub(crate) fn nowhere() -> Self {
        Self::of_code(404, "the server could not find the requested resource")
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.full_name());
        Self::of_code(404, message).about(resource, name)
    }

    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.full_name());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.full_name());
        Self::of_code(409, message).about(resource, name)
    }

    pub(crate) fn invalid(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is invalid: {why}", resource.kind);
        let mut error = Self::of_code(422, message).about(resource, name);
        error.details.kind.clone_from(&resource.kind);
        error
    }

    pub(crate) fn bad_request(why: impl Into<String>) -> Self {
        Self::of_code(400, why)
    }

    pub(crate) fn expired(why: impl Into<String>) -> Self {
        Self::of_code(410, why)
    }

    /// The v1 `Status` object.
    pub fn body(&self) -> Value {
        let mut body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code});
        if !self.reason.is_empty() {
            body["reason"] = json!(self.reason);
        }
        if *self.details != Details::default() {
            let details = &mut body["details"];
            *details = json!({});
            for (key, text) in [("name", &self.details.name), ("group", &self.details.group), ("kind", &self.details.kind)] {
                if !text.is_empty() {
                    details[key] = json!(text);
                }
            }
            if self.details.retry_after_seconds > 0 {
                details["retryAfterSeconds"] = json!(self.details.retry_after_seconds);
            }
        }
        body
    }
}
