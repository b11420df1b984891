//! Checks of a new version, and what the server puts into it by itself.

use serde_json::{Value, json};

use super::Part;
use crate::api::{
    object::{Object, child},
    resource::Resource,
    status::ApiError,
};

/// Checks an update against the version it replaces and restores what clients cannot change.
pub(super) fn admit(resource: &Resource, old: &Object, mut new: Value, part: Part) -> Result<Value, ApiError> {
    let name = old.name();
    set_type(resource, &mut new)?;
    child(&mut new, "metadata");
    let given = |key: &str| new["metadata"][key].as_str().filter(|text| !text.is_empty());
    if given("name").is_some_and(|given| given != name) {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({name})",
            new["metadata"]["name"]
        )));
    }
    if given("namespace").is_some_and(|given| given != old.namespace()) {
        return Err(ApiError::bad_request("the namespace of the object does not match the namespace on the URL"));
    }
    let other_uid = given("uid").filter(|uid| *uid != old.uid());
    if let Some(uid) = other_uid.filter(|_| part == Part::Replace || part == Part::Status) {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.uid());
        return Err(ApiError::conflict(resource, name, &why));
    }
    match given("resourceVersion") {
        Some(version) if part != Part::Everything && version != old.revision.to_string() => {
            let why = "the object has been modified; please apply your changes to the latest version and try again";
            return Err(ApiError::conflict(resource, name, why));
        }
        None if part == Part::Replace && !resource.unconditional_update => {
            let why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
            return Err(ApiError::invalid(resource, name, why));
        }
        _ => {}
    }
    if let Some(uid) = other_uid.filter(|_| part == Part::Patch) {
        let why = format!("metadata.uid: Invalid value: {uid:?}: field is immutable");
        return Err(ApiError::invalid(resource, name, &why));
    }
    if part == Part::Status {
        let status = new["status"].take();
        new = old.value.clone();
        set_or_remove(&mut new, "status", status);
    } else if part != Part::Everything && resource.status {
        set_or_remove(&mut new, "status", old.value["status"].clone());
    }
    let metadata = &mut new["metadata"];
    let fixed = ["name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion"];
    for key in fixed.into_iter().chain((part != Part::Everything).then_some("deletionTimestamp")) {
        set_or_remove(metadata, key, old.value["metadata"][key].clone());
    }
    Ok(new)
}

fn set_or_remove(value: &mut Value, key: &str, content: Value) {
    let Some(fields) = value.as_object_mut() else {
        return;
    };
    if content.is_null() {
        fields.remove(key);
    } else {
        fields.insert(key.to_owned(), content);
    }
}

pub(super) fn set_type(resource: &Resource, value: &mut Value) -> Result<(), ApiError> {
    let Some(fields) = value.as_object_mut() else {
        return Err(ApiError::bad_request("the object provided is unrecognized: it is not a JSON object"));
    };
    for (key, expected) in [("apiVersion", resource.api_version()), ("kind", resource.kind.clone())] {
        match fields.get(key).and_then(Value::as_str) {
            Some(given) if !given.is_empty() && given != expected => {
                let why = format!("{key} of the object ({given}) does not match what the URL expects ({expected})");
                return Err(ApiError::bad_request(why));
            }
            Some(given) if given == expected => {}
            _ => {
                fields.insert(key.to_owned(), json!(expected));
            }
        }
    }
    Ok(())
}

/// Defaults, validation and the generation.
pub(super) fn finish(resource: &Resource, name: &str, value: &mut Value) -> Result<(), ApiError> {
    if name.is_empty() {
        return Err(ApiError::invalid(resource, name, "metadata.name: Required value: name or generateName is required"));
    }
    for key in ["labels", "annotations"] {
        let entries = value["metadata"][key].as_object().into_iter().flatten();
        if let Some((entry, _)) = entries.into_iter().find(|(_, value)| !value.is_string()) {
            return Err(ApiError::bad_request(format!("metadata.{key}[{entry}] is no string")));
        }
    }
    let Some(scale) = &resource.scale else {
        return Ok(());
    };
    let replicas = find(value, &scale.spec).clone();
    match (replicas.as_i64(), scale.default) {
        (Some(0..=2_147_483_647), _) => Ok(()),
        (None, Some(default)) if replicas.is_null() => {
            *slot(value, &scale.spec) = json!(default);
            Ok(())
        }
        (None, None) if replicas.is_null() => Ok(()),
        _ => {
            let path = scale.spec.join(".");
            let why = format!("{path}: Invalid value: {replicas}: must be greater than or equal to 0");
            Err(ApiError::invalid(resource, name, &why))
        }
    }
}

/// The part of an object whose change counts as a new generation.
pub(super) fn wish(resource: &Resource, value: &Value) -> Value {
    if !resource.custom {
        return value["spec"].clone();
    }
    let fields = value.as_object().into_iter().flatten();
    fields.filter(|(key, _)| *key != "metadata" && *key != "status").map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// What a path leads to; null if it leads nowhere.
pub(crate) fn find<'v>(value: &'v Value, path: &[String]) -> &'v Value {
    path.iter().fold(value, |value, key| &value[key.as_str()])
}

/// The place a path leads to; objects on the way are made.
pub(crate) fn slot<'v>(value: &'v mut Value, path: &[String]) -> &'v mut Value {
    let Some((last, way)) = path.split_last() else {
        return value;
    };
    let mut place = value;
    for key in way {
        if !place[key.as_str()].is_object() {
            place[key.as_str()] = json!({});
        }
        place = &mut place[key.as_str()];
    }
    &mut place[last.as_str()]
}

pub(super) fn has_no_finalizers(metadata: &Value) -> bool {
    metadata["finalizers"].as_array().is_none_or(Vec::is_empty)
}
