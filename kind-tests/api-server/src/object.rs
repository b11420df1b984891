//! Objects as JSON.

use serde_json::{Value, json};

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
