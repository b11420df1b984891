//! The scale subresource: the replicas of an object, in the same form for every kind.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::{
    object::{Object, merge},
    resource::{Resource, ScalePaths},
    status::ApiError,
    store::{Part, Store, find, slot},
};

/// A change of the replicas.
pub(crate) enum Change {
    Replace(Value),
    Merge(Value),
}

/// The scale of an object.
pub(crate) fn read(object: &Object) -> Result<Value, ApiError> {
    let paths = paths(&object.resource)?;
    scale_of(&object.value, paths)
}

/// Changes the replicas of an object and answers its new scale.
pub(crate) fn write(
    store: &Store,
    resource: &Arc<Resource>,
    namespace: &str,
    name: &str,
    change: Change,
) -> Result<Value, ApiError> {
    let paths = paths(resource)?;
    let written = store.update_in(resource, namespace, name, Part::Patch, |old| {
        let before = scale_of(old, paths)?;
        let wanted = match change {
            Change::Replace(scale) => scale,
            Change::Merge(patch) => {
                let mut scale = before.clone();
                merge(&mut scale, &patch);
                scale
            }
        };
        for (key, reason) in [
            ("resourceVersion", "the object has been modified; please apply your changes to the latest version and try again"),
            ("uid", "Precondition failed: UID in precondition differs from UID in object meta"),
        ] {
            let given = wanted["metadata"][key].as_str().filter(|given| !given.is_empty());
            if given.is_some_and(|given| Some(given) != before["metadata"][key].as_str()) {
                return Err(ApiError::conflict(resource, name, reason));
            }
        }
        let given = wanted["metadata"]["name"].as_str().filter(|given| !given.is_empty());
        if given.is_some_and(|given| given != name) {
            return Err(ApiError::bad_request("the name of the scale does not match the name on the URL"));
        }
        let replicas = match &wanted["spec"]["replicas"] {
            // Absent means 0 in a Scale, whatever the kind behind it defaults to.
            Value::Null => json!(0),
            replicas => replicas.clone(),
        };
        let mut value = old.clone();
        *slot(&mut value, &paths.spec) = replicas;
        Ok(value)
    })?;
    read(&written)
}

fn paths(resource: &Resource) -> Result<&ScalePaths, ApiError> {
    resource.scale.as_ref().ok_or_else(|| ApiError::of_code(404, "the server could not find the requested resource"))
}

fn scale_of(value: &Value, paths: &ScalePaths) -> Result<Value, ApiError> {
    let Some(replicas) = find(value, &paths.spec).as_i64() else {
        let why = format!("Internal error occurred: the spec replicas field \".{}\" does not exist", paths.spec.join("."));
        return Err(ApiError::of_code(500, why));
    };
    let from = &value["metadata"];
    let mut metadata = json!({"name": from["name"], "uid": from["uid"], "resourceVersion": from["resourceVersion"],
        "creationTimestamp": from["creationTimestamp"]});
    if !from["namespace"].is_null() {
        metadata["namespace"] = from["namespace"].clone();
    }
    Ok(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": {"replicas": replicas},
        "status": {"replicas": find(value, &paths.status).as_i64().unwrap_or(0)}}))
}
