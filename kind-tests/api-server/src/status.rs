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

/// An error about one object, whose kind is mostly named by the plural.
fn about(resource: &Resource, name: &str, code: u16, message: String) -> ApiError {
    about_kind(&resource.group, &resource.plural, name, code, message)
}

pub(crate) fn about_kind(
    group: &str,
    kind: &str,
    name: &str,
    code: u16,
    message: String,
) -> ApiError {
    let details = details(group, kind, name);
    of_code(code, message).with_details(details).boxed()
}

/// Asks the client to retry after some seconds.
pub(crate) fn retry_after(mut error: ApiError, seconds: u32) -> ApiError {
    error.details = Some(StatusDetails {
        retry_after_seconds: seconds,
        ..details("", "", "")
    });
    error
}

/// Nothing is served at this path.
pub(crate) fn nowhere() -> ApiError {
    of_code(404, "the server could not find the requested resource")
}

pub(crate) fn not_found(resource: &Resource, name: &str) -> ApiError {
    let message = format!("{} \"{name}\" not found", resource.full_name());
    about(resource, name, 404, message)
}

pub(crate) fn already_exists(resource: &Resource, name: &str) -> ApiError {
    let message = format!("{} \"{name}\" already exists", resource.full_name());
    let mut error = about(resource, name, 409, message);
    error.reason = "AlreadyExists".to_owned();
    error
}

pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> ApiError {
    let resource_name = resource.full_name();
    let message = format!("Operation cannot be fulfilled on {resource_name} \"{name}\": {why}");
    about(resource, name, 409, message)
}

/// The UID of an update is not that of the object as it is.
pub(crate) fn other_uid(resource: &Resource, name: &str, wanted: &str, is: &str) -> ApiError {
    let why =
        format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {is}");
    conflict(resource, name, &why)
}

/// Refuses a DELETE with a precondition that does not hold of the object as it is. It is named by
/// its kind then.
pub(crate) fn check_precondition(
    resource: &Resource,
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
    let (group, kind) = (&resource.group, &resource.kind);
    let qualified = full_name(group, kind, "");
    let message = format!(
        "Operation cannot be fulfilled on {qualified} \"{name}\": the {field} in the precondition ({wanted}) does not match the {field} in record ({is}). The object might have been {happened}"
    );
    Err(about_kind(group, kind, name, 409, message))
}

/// Values of an object that are not allowed. It is named by its kind then.
pub(crate) fn invalid(resource: &Resource, name: &str, why: &str) -> ApiError {
    let (group, kind) = (&resource.group, &resource.kind);
    let qualified = full_name(group, kind, "");
    let message = format!("{qualified} \"{name}\" is invalid: {why}");
    about_kind(group, kind, name, 422, message)
}

/// An update that names no version, of a kind that needs one.
pub(crate) fn without_version(resource: &Resource, name: &str) -> ApiError {
    let message = format!(
        "{} \"{name}\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        resource.full_name()
    );
    about(resource, name, 422, message)
}

/// A patch that leads to what is no object of the kind.
pub(crate) fn unreadable(why: &str) -> ApiError {
    of_code(422, format!(" \"\" is invalid: patch: {why}"))
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
