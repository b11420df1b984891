//! Checks of a new version, and what the server puts into it by itself.

use serde_json::{Value, json};

use super::Part;
use crate::api::{
    object::{Object, merge},
    resource::Resource,
    status::{ApiError, bad_request, conflict, failed_precondition, invalid},
};

/// Checks an update against the version it replaces and restores what clients cannot change.
pub(super) fn admit(
    resource: &Resource,
    old: &Object,
    mut new: Value,
    part: Part,
) -> Result<Value, ApiError> {
    let name = old.metadata("name");
    set_type(resource, &mut new)?;
    merge(&mut new, &json!({"metadata": {}}));
    let given = |key: &str| {
        new["metadata"][key]
            .as_str()
            .filter(|text| !text.is_empty())
    };
    for (key, is) in [("name", name), ("namespace", old.metadata("namespace"))] {
        if let Some(given) = given(key).filter(|given| *given != is) {
            let why = format!(
                "the {key} of the object ({given}) does not match the {key} on the URL ({is})"
            );
            return Err(bad_request(why));
        }
    }
    let other_uid = given("uid").filter(|uid| *uid != old.metadata("uid"));
    if let Some(uid) = other_uid.filter(|_| !matches!(part, Part::Everything | Part::Patch)) {
        return Err(failed_precondition(
            resource,
            name,
            "UID",
            uid,
            old.metadata("uid"),
        ));
    }
    match given("resourceVersion") {
        Some(version) if part != Part::Everything && version != old.revision.to_string() => {
            let why = "the object has been modified; please apply your changes to the latest version and try again";
            return Err(conflict(resource, name, why));
        }
        None if part == Part::Replace && resource.needs_version() => {
            let why = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
            return Err(invalid(resource, name, why));
        }
        _ => {}
    }
    if let Some(uid) = other_uid.filter(|_| part == Part::Patch) {
        return Err(invalid(
            resource,
            name,
            &format!("metadata.uid: Invalid value: {uid:?}: field is immutable"),
        ));
    }
    if part != Part::Everything && resource.status {
        set_or_remove(&mut new, "status", &old.value["status"]);
    }
    let fixed = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "resourceVersion",
    ];
    for key in fixed
        .into_iter()
        .chain((part != Part::Everything).then_some("deletionTimestamp"))
    {
        set_or_remove(&mut new["metadata"], key, &old.value["metadata"][key]);
    }
    Ok(new)
}

fn set_or_remove(value: &mut Value, key: &str, content: &Value) {
    merge(value, &json!({key: null}));
    merge(value, &json!({key: content}));
}

pub(super) fn set_type(resource: &Resource, value: &mut Value) -> Result<(), ApiError> {
    let Some(fields) = value.as_object_mut() else {
        return Err(bad_request(
            "the object provided is unrecognized: it is not a JSON object",
        ));
    };
    for (key, expected) in [
        ("apiVersion", resource.api_version()),
        ("kind", resource.kind.clone()),
    ] {
        match fields.get(key).and_then(Value::as_str) {
            Some(given) if !given.is_empty() && given != expected => {
                let why = format!(
                    "{key} of the object ({given}) does not match what the URL expects ({expected})"
                );
                return Err(bad_request(why));
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
        return Err(invalid(
            resource,
            name,
            "metadata.name: Required value: a name is required",
        ));
    }
    for key in ["labels", "annotations"] {
        let entries = value["metadata"][key].as_object().into_iter().flatten();
        if let Some((entry, _)) = entries.into_iter().find(|(_, value)| !value.is_string()) {
            return Err(bad_request(format!("metadata.{key}[{entry}] is no string")));
        }
    }
    if resource.scale && !resource.custom && value["spec"]["replicas"].is_null() {
        merge(value, &json!({"spec": {"replicas": 1}}));
    }
    let replicas = &value["spec"]["replicas"];
    if resource.scale
        && !replicas.is_null()
        && !matches!(replicas.as_i64(), Some(0..=2_147_483_647))
    {
        let why =
            format!("spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0");
        return Err(invalid(resource, name, &why));
    }
    Ok(())
}

/// The part of an object whose change counts as a new generation.
pub(super) fn wish(resource: &Resource, value: &Value) -> Value {
    if !resource.custom {
        return value["spec"].clone();
    }
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter(|(key, _)| *key != "metadata" && *key != "status")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

pub(super) fn has_no_finalizers(metadata: &Value) -> bool {
    metadata["finalizers"].as_array().is_none_or(Vec::is_empty)
}
