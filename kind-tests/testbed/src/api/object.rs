//! One version of one object, with its encodings made once and kept.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::api::{protobuf, resource::Resource};

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
        Self {
            resource,
            revision,
            value,
            fields: OnceLock::new(),
            protobuf: OnceLock::new(),
        }
    }

    /// A text of its metadata.
    pub fn metadata(&self, key: &str) -> &str {
        self.value["metadata"][key].as_str().unwrap_or_default()
    }

    fn fields(&self) -> &Bytes {
        self.fields.get_or_init(|| {
            let mut fields = self.value.clone();
            merge(&mut fields, &json!({"apiVersion": null, "kind": null}));
            let text = Bytes::from(fields.to_string());
            text.slice(1..text.len() - 1)
        })
    }

    /// Appends the object as JSON, with its type.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let Resource { kind, .. } = &*self.resource;
        out.extend_from_slice(
            format!(
                r#"{{"apiVersion":"{}","kind":"{kind}","#,
                self.resource.api_version()
            )
            .as_bytes(),
        );
        out.extend_from_slice(self.fields());
        out.push(b'}');
    }

    /// Appends the object as an item of a list: built-in kinds do not repeat their type there.
    pub fn write_json_item(&self, out: &mut Vec<u8>) {
        if self.resource.custom {
            return self.write_json(out);
        }
        out.push(b'{');
        out.extend_from_slice(self.fields());
        out.push(b'}');
    }

    /// The message of the object, without envelope, for the kinds that have one here.
    pub fn protobuf(&self) -> Option<&Bytes> {
        self.protobuf
            .get_or_init(|| protobuf::encode_object(&self.resource, &self.value))
            .as_ref()
    }
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
        merge(
            &mut target,
            &json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "l": [3], "n": null}),
        );
        assert_eq!(target, json!({"a": {"c": 2, "d": {"f": 1}}, "l": [3]}));
    }
}
