//! Checks of a new version, and what the server puts into it by itself.

use serde_json::{Value, json};

use crate::{
    object::{StoredObject, merge, metadata},
    requests::Record,
    resource::Resource,
    status::{ApiError, bad_request, conflict, immutable_uid, without_version},
};

/// What clients cannot change.
const FIXED: [&str; 6] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "deletionTimestamp",
];

/// Checks an update against the version it replaces and restores what clients cannot change. The
/// test may change the status and the deletion, whatever the version is.
pub(super) fn admit(
    resource: &Resource,
    old: &StoredObject,
    new: &mut Value,
    client: Option<&Record>,
) -> Result<(), ApiError> {
    set_type(resource, new)?;
    merge(new, &json!({"metadata": {}}));
    let Some(client) = client else {
        restore(new, old, &FIXED[..5]);
        return Ok(());
    };
    let (name, is) = (old.metadata("name"), old.metadata("uid"));
    let other = Some(metadata(new, "uid")).filter(|uid| !uid.is_empty() && *uid != is);
    let version = metadata(new, "resourceVersion");
    if version.is_empty() && client.verb == "update" {
        return Err(without_version(resource, name));
    }
    if !version.is_empty() && version != old.revision.to_string() {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(conflict(resource, name, why));
    }
    if let Some(other) = other {
        return Err(immutable_uid(resource, name, other));
    }
    if resource.status {
        set_or_remove(new, "status", &old.value["status"]);
    }
    restore(new, old, &FIXED);
    Ok(())
}

fn restore(new: &mut Value, old: &StoredObject, fixed: &[&str]) {
    for key in fixed {
        set_or_remove(&mut new["metadata"], key, &old.value["metadata"][*key]);
    }
}

fn set_or_remove(value: &mut Value, key: &str, content: &Value) {
    merge(value, &json!({key: null}));
    merge(value, &json!({key: content}));
}

pub(super) fn set_type(resource: &Resource, value: &mut Value) -> Result<(), ApiError> {
    let why = "the object provided is unrecognized: it is not a JSON object";
    let fields = value.as_object_mut().ok_or_else(|| bad_request(why))?;
    fields.insert("apiVersion".to_owned(), json!(resource.api_version()));
    fields.insert("kind".to_owned(), json!(resource.kind));
    Ok(())
}

/// What has a default gets it, and empty maps go.
pub(super) fn set_defaults(resource: &Resource, value: &mut Value) {
    for key in ["labels", "annotations"] {
        if value["metadata"][key] == json!({}) {
            merge(value, &json!({"metadata": {key: null}}));
        }
    }
    if resource.replicas && value["spec"]["replicas"].is_null() {
        merge(value, &json!({"spec": {"replicas": 1}}));
    }
}
