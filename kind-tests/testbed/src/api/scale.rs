//! The scale subresource: the replicas of an object, in the same form for every kind.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::{
    object::Object,
    resource::{Resource, ScalePaths},
    status::{ApiError, nowhere, of_code},
    store::{Part, Store},
};

/// The scale of an object.
pub(crate) fn read(object: &Object) -> Result<Value, ApiError> {
    scale_of(&object.value, paths(&object.resource)?)
}

/// Changes the scale of an object and answers the new one.
pub(crate) fn write(
    store: &Store,
    resource: &Arc<Resource>,
    namespace: &str,
    name: &str,
    change: impl FnOnce(&mut Value),
) -> Result<Value, ApiError> {
    let paths = paths(resource)?;
    let written = store.update_in(resource, namespace, name, Part::Scale, |object| {
        let mut scale = scale_of(object, paths)?;
        change(&mut scale);
        for key in ["name", "uid", "resourceVersion"] {
            object["metadata"][key] = scale["metadata"][key].take();
        }
        // Absent means 0 in a Scale, whatever the kind behind it defaults to.
        let replicas = scale["spec"]["replicas"].take();
        paths.set(object, if replicas.is_null() { json!(0) } else { replicas });
        Ok(())
    })?;
    read(&written)
}

fn paths(resource: &Resource) -> Result<&ScalePaths, ApiError> {
    resource.scale.as_ref().ok_or_else(nowhere)
}

fn scale_of(value: &Value, paths: &ScalePaths) -> Result<Value, ApiError> {
    let Some(replicas) = value.pointer(&paths.spec).and_then(Value::as_i64) else {
        let path = paths.spec.replace('/', ".");
        return Err(of_code(500, format!("Internal error occurred: the spec replicas field {path:?} does not exist")));
    };
    let from = &value["metadata"];
    let mut metadata = json!({"name": from["name"], "uid": from["uid"], "resourceVersion": from["resourceVersion"],
        "creationTimestamp": from["creationTimestamp"]});
    if !from["namespace"].is_null() {
        metadata["namespace"] = from["namespace"].clone();
    }
    let observed = value.pointer(&paths.status).and_then(Value::as_i64).unwrap_or_default();
    Ok(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": {"replicas": replicas},
        "status": {"replicas": observed}}))
}
