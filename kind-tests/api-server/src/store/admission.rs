//! Checks of a new version, and what the server puts into it by itself.

use serde_json::{Value, json};

use crate::{
    object::{StoredObject, merge, metadata},
    requests::Record,
    resource::Resource,
    status::{ApiError, bad_request, conflict, immutable_uid, without_version},
};

/// Fields of the metadata that stay as they are.
const FIXED: [&str; 5] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "resourceVersion",
];

/// Checks an update against the version it replaces, and restores what stays as it is. The test may
/// change any version.
pub(super) fn admit(
    resource: &Resource,
    old: &StoredObject,
    new: &mut Value,
    client: Option<&Record>,
) -> Result<(), ApiError> {
    set_type(resource, new)?;
    if let Some(client) = client {
        check(resource, old, new, client)?;
    }
    for key in FIXED {
        merge(new, &json!({"metadata": {key: old.value["metadata"][key]}}));
    }
    Ok(())
}

fn check(
    resource: &Resource,
    old: &StoredObject,
    new: &Value,
    client: &Record,
) -> Result<(), ApiError> {
    let (name, is) = (old.metadata("name"), old.metadata("uid"));
    let [uid, version] = ["uid", "resourceVersion"].map(|key| metadata(new, key));
    if version.is_empty() && client.verb == "update" {
        return Err(without_version(resource, name));
    }
    if !version.is_empty() && version != old.revision.to_string() {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(conflict(resource, name, why));
    }
    if !uid.is_empty() && uid != is {
        return Err(immutable_uid(resource, name, uid));
    }
    Ok(())
}

pub(super) fn set_type(resource: &Resource, value: &mut Value) -> Result<(), ApiError> {
    let why = "the object provided is unrecognized: it is not a JSON object";
    let fields = value.as_object_mut().ok_or_else(|| bad_request(why))?;
    fields.insert("apiVersion".to_owned(), json!(resource.api_version()));
    fields.insert("kind".to_owned(), json!(resource.kind));
    Ok(())
}

/// Empty maps go.
pub(super) fn leave_out_empty_maps(value: &mut Value) {
    for key in ["labels", "annotations"] {
        if value["metadata"][key] == json!({}) {
            merge(value, &json!({"metadata": {key: null}}));
        }
    }
}
