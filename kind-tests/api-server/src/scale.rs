//! The scale subresource: the replicas of an object, in the same form for every kind.

use serde_json::{Map, Value, json};

use crate::{
    object::{StoredObject, merge},
    requests::Record,
    route::ApiTarget,
    status::{ApiError, of_code},
    store::Store,
};

/// Merges a patch into the scale of an object and answers the new one.
pub(crate) fn write(
    store: &Store,
    ApiTarget {
        resource,
        namespace,
        name,
        ..
    }: &ApiTarget,
    request: &Record,
    patch: &Value,
) -> Result<Value, ApiError> {
    let written = store.update_in(resource, namespace, name, Some(request), |object| {
        let mut scale = scale_of(object);
        merge(&mut scale, patch);
        for key in ["name", "uid", "resourceVersion"] {
            object["metadata"][key] = scale["metadata"][key].take();
        }
        // Absent means 0 in a Scale, whatever the kind behind it defaults to.
        let replicas = match scale["spec"]["replicas"].take() {
            Value::Null => json!(0),
            replicas => replicas,
        };
        merge(object, &json!({"spec": {"replicas": replicas}}));
    })?;
    read(&written)
}

/// The scale of an object.
pub(crate) fn read(object: &StoredObject) -> Result<Value, ApiError> {
    if object.value["spec"]["replicas"].is_null() {
        let why =
            "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist";
        return Err(of_code(500, why));
    }
    Ok(scale_of(&object.value))
}

fn scale_of(object: &Value) -> Value {
    let shown = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ];
    let shown = shown.map(|key| (key.to_owned(), object["metadata"][key].clone()));
    let metadata = Map::from_iter(shown);
    let observed = object["status"]["replicas"].as_i64().unwrap_or_default();
    // A zero is left out.
    let wanted = object["spec"]["replicas"]
        .as_i64()
        .filter(|wanted| *wanted != 0);
    let spec = wanted.map_or_else(|| json!({}), |wanted| json!({"replicas": wanted}));
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": spec, "status": {"replicas": observed}})
}
