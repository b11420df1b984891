//! Checks of a new version, and what the server puts into it by itself.

use serde_json::{Map, Value, json};

use crate::{
    object::{StoredObject, merge, metadata},
    requests::Record,
    resource::Resource,
    status::{ApiError, bad_request, conflict, invalid, other_uid, unreadable, without_version},
};

/// What clients cannot change.
const FIXED: [&str; 7] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "generation",
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
    let name = old.metadata("name");
    for key in ["name", "namespace"] {
        let (given, is) = (metadata(new, key), old.metadata(key));
        if !given.is_empty() && given != is {
            return Err(bad_request(format!(
                "the {key} of the object ({given}) does not match the {key} on the URL ({is})"
            )));
        }
    }
    let Some(client) = client else {
        restore(new, old, &FIXED[..6]);
        return Ok(());
    };
    let is_scale = client.resource.ends_with("/scale");
    let is_patch = client.verb == "patch";
    let is = old.metadata("uid");
    let other = Some(metadata(new, "uid")).filter(|uid| !uid.is_empty() && *uid != is);
    // A patch of a custom resource's scale may name any UID.
    if let Some(other) = other.filter(|_| !is_patch || is_scale && !resource.custom) {
        return Err(other_uid(resource, name, other, is));
    }
    let version = metadata(new, "resourceVersion");
    if !version.is_empty() && version != old.revision.to_string() {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(conflict(resource, name, why));
    }
    if version.is_empty() && client.verb == "update" && !is_scale && resource.needs_version() {
        return Err(without_version(resource, name));
    }
    if let Some(other) = other.filter(|_| !is_scale) {
        let why = format!("metadata.uid: Invalid value: {other:?}: field is immutable");
        return Err(invalid(resource, name, &why));
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
    let Some(fields) = value.as_object_mut() else {
        let why = "the object provided is unrecognized: it is not a JSON object";
        return Err(bad_request(why));
    };
    for (key, expected) in [
        ("apiVersion", resource.api_version()),
        ("kind", resource.kind.clone()),
    ] {
        let given = fields.get(key).and_then(Value::as_str).unwrap_or_default();
        if !given.is_empty() && given != expected {
            return Err(bad_request(format!(
                "{key} of the object ({given}) does not match what the URL expects ({expected})"
            )));
        }
        fields.insert(key.to_owned(), json!(expected));
    }
    Ok(())
}

/// Defaults and validation.
pub(super) fn finish(resource: &Resource, name: &str, value: &mut Value) -> Result<(), ApiError> {
    if name.is_empty() {
        let why = "metadata.name: Required value: a name is required";
        return Err(invalid(resource, name, why));
    }
    for key in ["labels", "annotations"] {
        let entries = value["metadata"][key].as_object();
        let mut others = entries.into_iter().flatten();
        if let Some((entry, _)) = others.find(|(_, value)| !value.is_string()) {
            return Err(unreadable(&format!("metadata.{key}[{entry}] is no string")));
        }
        if entries.is_some_and(Map::is_empty) {
            merge(value, &json!({"metadata": {key: null}}));
        }
    }
    if !resource.scale {
        return Ok(());
    }
    if !resource.custom && value["spec"]["replicas"].is_null() {
        merge(value, &json!({"spec": {"replicas": 1}}));
    }
    let replicas = &value["spec"]["replicas"];
    let is_valid = |number| (0..=i64::from(i32::MAX)).contains(&number);
    if !replicas.is_null() && !replicas.as_i64().is_some_and(is_valid) {
        return Err(match resource.custom {
            true => invalid(
                resource,
                name,
                &format!(
                    ".spec.replicas: Invalid value: {replicas}: should be a non-negative integer"
                ),
            ),
            false if !replicas.is_i64() => unreadable(&format!("spec.replicas is {replicas}")),
            false => invalid(
                resource,
                name,
                &format!(
                    "spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0"
                ),
            ),
        });
    }
    Ok(())
}

/// The part of an object whose change counts as a new generation: of Deployments also the
/// annotations.
pub(super) fn wish(resource: &Resource, object: &Value) -> Value {
    if resource.kind == "Deployment" {
        return json!([object["spec"], object["metadata"]["annotations"]]);
    }
    if !resource.custom {
        return object["spec"].clone();
    }
    let mut wish = object.clone();
    merge(&mut wish, &json!({"metadata": null, "status": null}));
    wish
}
