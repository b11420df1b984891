//! Errors as the API tells them: v1 `Status` objects.

use http::StatusCode;
use kube_core::Status;
use kube_core::response::StatusDetails;
use serde_json::{Value, json};

use crate::resource::{Resource, full_name};

/// An error of the API.
pub type ApiError = Box<Status>;

/// The error that belongs to an HTTP status.
pub(crate) fn of_code(code: u16, message: impl Into<String>) -> ApiError {
    let http = || StatusCode::from_u16(code).ok()?.canonical_reason();
    let reason = match code {
        410 => "Expired",
        413 => "RequestEntityTooLarge",
        422 => "Invalid",
        500 => "InternalError",
        504 => "Timeout",
        _ => http().unwrap_or_default(),
    };
    // HTTP's own words have spaces.
    let status = Status::failure(&message.into(), &reason.replace(' ', ""));
    status.with_code(code).boxed()
}

/// What a Status is about. The API calls the plural of a resource its kind.
pub(crate) fn details(group: &str, kind: &str, name: &str) -> StatusDetails {
    let [name, group, kind] = [name, group, kind].map(str::to_owned);
    StatusDetails {
        name,
        group,
        kind,
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

/// An error about one object. `says` gets its kind and name.
fn about(
    code: u16,
    group: &str,
    kind: &str,
    name: &str,
    says: impl FnOnce(&str) -> String,
) -> ApiError {
    let message = says(&format!("{} \"{name}\"", full_name(group, kind, "")));
    let details = details(group, kind, name);
    of_code(code, message).with_details(details).boxed()
}

/// What the rules do not allow.
pub(crate) fn forbidden(group: &str, plural: &str, name: &str, why: String) -> ApiError {
    about(403, group, plural, name, |_| why)
}

/// Nothing is served at this path.
pub(crate) fn nowhere() -> ApiError {
    of_code(404, "the server could not find the requested resource")
}

pub(crate) fn not_found(Resource { group, plural, .. }: &Resource, name: &str) -> ApiError {
    about(404, group, plural, name, |object| {
        format!("{object} not found")
    })
}

pub(crate) fn already_exists(Resource { group, plural, .. }: &Resource, name: &str) -> ApiError {
    let mut error = about(409, group, plural, name, |object| {
        format!("{object} already exists")
    });
    error.reason = "AlreadyExists".to_owned();
    error
}

fn unfulfilled(object: &str, why: &str) -> String {
    format!("Operation cannot be fulfilled on {object}: {why}")
}

pub(crate) fn conflict(
    Resource { group, plural, .. }: &Resource,
    name: &str,
    why: &str,
) -> ApiError {
    about(409, group, plural, name, |object| unfulfilled(object, why))
}

/// Why an update is refused whose UID is not that of the object as it is.
pub(crate) fn other_uid(wanted: &str, is: &str) -> String {
    format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {is}")
}

/// Refuses a DELETE with a precondition that does not hold of the object as it is. It is named by
/// its kind then.
pub(crate) fn check_precondition(
    Resource { group, kind, .. }: &Resource,
    name: &str,
    field: &str,
    wanted: Option<&str>,
    is: &str,
) -> Result<(), ApiError> {
    let Some(wanted) = wanted.filter(|wanted| *wanted != is) else {
        return Ok(());
    };
    let happened = match field {
        "UID" => "deleted and then recreated",
        _ => "modified",
    };
    let why = format!(
        "the {field} in the precondition ({wanted}) does not match the {field} in record ({is}). The object might have been {happened}"
    );
    Err(about(409, group, kind, name, |object| {
        unfulfilled(object, &why)
    }))
}

/// A UID that differs. It is named by its kind then.
pub(crate) fn immutable_uid(
    Resource { group, kind, .. }: &Resource,
    name: &str,
    uid: &str,
) -> ApiError {
    about(422, group, kind, name, |object| {
        format!("{object} is invalid: metadata.uid: Invalid value: {uid:?}: field is immutable")
    })
}

/// An update that names no version.
pub(crate) fn without_version(Resource { group, plural, .. }: &Resource, name: &str) -> ApiError {
    about(422, group, plural, name, |object| {
        format!(
            "{object} is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        )
    })
}

pub(crate) fn bad_request(why: impl Into<String>) -> ApiError {
    of_code(400, why)
}

/// A Status as it goes over the wire.
pub(crate) fn body(status: &Status) -> Value {
    let mut body = json!(status);
    (body["kind"], body["apiVersion"], body["metadata"]) =
        (json!("Status"), json!("v1"), json!({}));
    body
}
