//! One version of one object.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::resource::Resource;

/// One version of one object, with its type. Versions are immutable; a write makes a new one.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub resource: Arc<Resource>,
    pub revision: u64,
    pub value: Value,
}

impl StoredObject {
    /// The object as an item of a list: built-in kinds do not repeat their type there.
    pub fn list_item(&self) -> Value {
        let mut item = self.value.clone();
        if !self.resource.custom {
            merge(&mut item, &json!({"apiVersion": null, "kind": null}));
        }
        item
    }
}

/// A text of an object's metadata; empty where there is none.
pub(crate) fn metadata<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Merges a JSON merge patch (RFC 7386) into a value.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        match (value, target.as_object_mut()) {
            (Value::Null, Some(fields)) => drop(fields.remove(key)),
            _ => merge(&mut target[key], value),
        }
    }
}
