//! One version of one object, with its encodings made once and kept.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{protobuf, resource::Resource};

/// One version of one object. Versions are immutable; a write makes a new one.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub resource: Arc<Resource>,
    pub revision: u64,
    pub value: Value,
    /// As JSON, without apiVersion and kind.
    untyped: OnceLock<Bytes>,
    protobuf: OnceLock<Bytes>,
}

impl StoredObject {
    pub fn new(resource: Arc<Resource>, revision: u64, value: Value) -> Self {
        Self {
            resource,
            revision,
            value,
            untyped: OnceLock::new(),
            protobuf: OnceLock::new(),
        }
    }

    /// A text of its metadata.
    pub fn metadata(&self, key: &str) -> &str {
        metadata(&self.value, key)
    }

    fn untyped(&self) -> &Bytes {
        self.untyped.get_or_init(|| {
            let mut untyped = self.value.clone();
            merge(&mut untyped, &json!({"apiVersion": null, "kind": null}));
            untyped.to_string().into()
        })
    }

    /// The object as JSON, with its type.
    pub fn json(&self) -> Bytes {
        let (version, kind) = (self.resource.api_version(), &self.resource.kind);
        let head = format!(r#"{{"apiVersion":"{version}","kind":"{kind}","#);
        [head.as_bytes(), &self.untyped()[1..]].concat().into()
    }

    /// The object as an item of a list: built-in kinds do not repeat their type there.
    pub fn list_item(&self) -> Bytes {
        if self.resource.custom {
            self.json()
        } else {
            self.untyped().clone()
        }
    }

    /// The message of the object, without envelope; of a kind that has one here.
    pub fn protobuf(&self) -> &Bytes {
        let encode = || protobuf::encode_object(&self.resource, &self.value);
        self.protobuf.get_or_init(encode)
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
