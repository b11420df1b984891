//! Errors as the API tells them: v1 `Status` objects.

use http::StatusCode;
use kube_core::Status;
use kube_core::response::StatusDetails;
use serde_json::{Value, json};

use crate::resource::{Resource, full_name, group};

/// An error of the API.
pub type ApiError = Box<Status>;

/// The error that belongs to an HTTP status.
pub(crate) fn of_code(code: u16, message: impl Into<String>) -> ApiError {
    let http = || StatusCode::from_u16(code).ok()?.canonical_reason();
    let reason = match code {
        410 => "Expired",
        422 => "Invalid",
        500 => "InternalError",
        504 => "Timeout",
        _ => http().unwrap_or_default(),
    };
    // HTTP's own words have spaces.
    let status = Status::failure(&message.into(), &reason.replace(' ', ""));
    status.with_code(code).boxed()
}

pub(crate) fn bad_request(why: impl Into<String>) -> ApiError {
    of_code(400, why)
}

/// Nothing is served at this path.
pub(crate) fn nowhere() -> ApiError {
    of_code(404, "the server could not find the requested resource")
}

/// An object, or without a name a collection, as Statuses name it: by the plural of its resource,
/// which they call its kind, or by its kind.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub group: &'a str,
    pub kind: &'a str,
    pub name: &'a str,
}

impl<'a> Named<'a> {
    pub fn by_plural(resource: &'a Resource, name: &'a str) -> Self {
        let group = group(&resource.api_version);
        Self {
            group,
            kind: &resource.plural,
            name,
        }
    }

    pub fn by_kind(resource: &'a Resource, name: &'a str) -> Self {
        Self {
            kind: &resource.kind,
            ..Self::by_plural(resource, name)
        }
    }

    pub fn details(self) -> StatusDetails {
        let [name, group, kind] = [self.name, self.group, self.kind].map(str::to_owned);
        StatusDetails {
            name,
            group,
            kind,
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        }
    }

    /// An error about it. `says` gets what it is called.
    pub fn error(self, code: u16, says: impl FnOnce(&str) -> String) -> ApiError {
        let full = full_name(self.group, self.kind, "");
        let called = match self.name {
            "" => full,
            name => format!("{full} \"{name}\""),
        };
        of_code(code, says(&called))
            .with_details(self.details())
            .boxed()
    }

    pub fn not_found(self) -> ApiError {
        self.error(404, |object| format!("{object} not found"))
    }

    pub fn conflict(self, why: &str) -> ApiError {
        self.error(409, |object| {
            format!("Operation cannot be fulfilled on {object}: {why}")
        })
    }

    pub fn invalid(self, why: &str) -> ApiError {
        self.error(422, |object| format!("{object} is invalid: {why}"))
    }
}

/// A Status as it goes over the wire.
pub(crate) fn body(status: &Status) -> Value {
    let mut body = json!(status);
    (body["kind"], body["apiVersion"], body["metadata"]) =
        (json!("Status"), json!("v1"), json!({}));
    body
}
