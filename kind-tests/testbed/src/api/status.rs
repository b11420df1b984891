//! Errors as the API tells them: v1 `Status` objects.

use http::StatusCode;
use kube::core::Status;
use kube::core::response::StatusDetails;
use serde_json::{Value, json};

use crate::api::resource::Resource;

/// An error of the API.
pub type ApiError = Box<Status>;

/// The error that belongs to an HTTP status.
pub(crate) fn of_code(code: u16, message: impl Into<String>) -> ApiError {
    let reason = match code {
        410 => "Expired".to_owned(),
        413 => "RequestEntityTooLarge".to_owned(),
        422 => "Invalid".to_owned(),
        500 => "InternalError".to_owned(),
        504 => "Timeout".to_owned(),
        // Those of the others are HTTP's own words.
        _ => StatusCode::from_u16(code)
            .ok()
            .and_then(|code| code.canonical_reason())
            .unwrap_or_default()
            .replace(' ', ""),
    };
    Status::failure(&message.into(), &reason)
        .with_code(code)
        .boxed()
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

fn about(resource: &Resource, name: &str, error: ApiError) -> ApiError {
    error
        .with_details(details(&resource.group, &resource.plural, name))
        .boxed()
}

/// The same, asking to wait for so many seconds.
pub(crate) fn retry_after(error: ApiError, seconds: u32) -> ApiError {
    error
        .with_details(StatusDetails {
            retry_after_seconds: seconds,
            ..details("", "", "")
        })
        .boxed()
}

/// Nothing is served at this path.
pub(crate) fn nowhere() -> ApiError {
    of_code(404, "the server could not find the requested resource")
}

pub(crate) fn not_found(resource: &Resource, name: &str) -> ApiError {
    about(
        resource,
        name,
        of_code(
            404,
            format!("{} \"{name}\" not found", resource.full_name()),
        ),
    )
}

pub(crate) fn already_exists(resource: &Resource, name: &str) -> ApiError {
    let message = format!("{} \"{name}\" already exists", resource.full_name());
    about(
        resource,
        name,
        Status::failure(&message, "AlreadyExists")
            .with_code(409)
            .boxed(),
    )
}

pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> ApiError {
    let message = format!(
        "Operation cannot be fulfilled on {} \"{name}\": {why}",
        resource.full_name()
    );
    about(resource, name, of_code(409, message))
}

/// A conflict over what must hold of the object as it is.
pub(crate) fn failed_precondition(
    resource: &Resource,
    name: &str,
    what: &str,
    wanted: &str,
    is: &str,
) -> ApiError {
    let why = format!(
        "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {is}"
    );
    conflict(resource, name, &why)
}

pub(crate) fn invalid(resource: &Resource, name: &str, why: &str) -> ApiError {
    let message = format!("{} \"{name}\" is invalid: {why}", resource.kind);
    of_code(422, message)
        .with_details(details(&resource.group, &resource.kind, name))
        .boxed()
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
