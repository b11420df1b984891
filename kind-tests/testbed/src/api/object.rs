//! One version of one object, with its encodings made once and kept.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::api::{protobuf, resource::Resource};

/// How an object is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of it.
    Full,
    /// Its metadata alone, as `PartialObjectMetadata`.
    Metadata,
}

/// One version of one object. Versions are immutable; a write makes a new one.
#[derive(Debug)]
pub(crate) struct Object {
    pub resource: Arc<Resource>,
    pub revision: u64,
    pub value: Value,
    /// The fields between the braces, without apiVersion and kind.
    fields: OnceLock<Bytes>,
    protobuf: OnceLock<Option<Bytes>>,
}

impl Object {
    pub fn new(resource: Arc<Resource>, revision: u64, value: Value) -> Self {
        Self { resource, revision, value, fields: OnceLock::new(), protobuf: OnceLock::new() }
    }

    pub fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub fn namespace(&self) -> &str {
        self.value["metadata"]["namespace"].as_str().unwrap_or_default()
    }

    pub fn uid(&self) -> &str {
        self.value["metadata"]["uid"].as_str().unwrap_or_default()
    }

    fn fields(&self) -> &Bytes {
        self.fields.get_or_init(|| {
            let mut text = Vec::with_capacity(512);
            for (key, value) in self.value.as_object().into_iter().flatten() {
                if key == "apiVersion" || key == "kind" {
                    continue;
                }
                if !text.is_empty() {
                    text.push(b',');
                }
                write_json(&mut text, key);
                text.push(b':');
                write_json(&mut text, value);
            }
            text.into()
        })
    }

    /// Appends the object as JSON, with its type.
    pub fn write_json(&self, out: &mut Vec<u8>, form: Form) {
        match form {
            Form::Full => {
                let head = format!(r#"{{"apiVersion":"{}","kind":"{}","#, self.resource.api_version(), self.resource.kind);
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(self.fields());
                out.push(b'}');
            }
            Form::Metadata => write_json(
                out,
                &json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": self.value["metadata"]}),
            ),
        }
    }

    /// Appends the object as an item of a list: built-in kinds do not repeat their type there.
    pub fn write_json_item(&self, out: &mut Vec<u8>, form: Form) {
        if form == Form::Metadata || self.resource.custom {
            return self.write_json(out, form);
        }
        out.push(b'{');
        out.extend_from_slice(self.fields());
        out.push(b'}');
    }

    /// The message of the object, without envelope, for the kinds that have one here.
    pub fn protobuf(&self) -> Option<&Bytes> {
        self.protobuf.get_or_init(|| protobuf::encode_object(&self.resource, &self.value)).as_ref()
    }
}

/// Appends JSON text.
pub(crate) fn write_json(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("values of JSON always serialise into memory");
}

/// The object at `key`, made if it is absent or no object.
pub(crate) fn child<'v>(value: &'v mut Value, key: &str) -> &'v mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    let slot = &mut value[key];
    if !slot.is_object() {
        *slot = json!({});
    }
    slot.as_object_mut().expect("it was just made an object")
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
    let Value::Object(fields) = target else {
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merge_patches_set_remove_and_replace() {
        let mut target = json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
        merge(&mut target, &json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "l": [3], "n": null}));
        assert_eq!(target, json!({"a": {"c": 2, "d": {"f": 1}}, "l": [3]}));
    }
}
