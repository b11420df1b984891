//! An object that may be unreadable.

use common_core::change::Key;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::read;

/// An object of a list or a watch, or why it cannot be read.
///
/// kube's `DeserializeGuard` would do the same, but builds a tree of the whole object: that fails
/// where it is nested deeply, and takes hundreds of times its size where it has many small values.
#[derive(Clone, Debug)]
pub struct Readable<K>(pub Result<K, UnreadableObject>);

#[derive(Clone, Debug)]
pub struct UnreadableObject {
    /// Name, namespace and version alone.
    pub(crate) metadata: ObjectMeta,
    pub(crate) error: String,
}

/// The part of an object that tells it from others, whatever else it holds.
#[derive(Deserialize)]
struct NamedObject {
    metadata: NameMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NameMetadata {
    name: String,
    namespace: Option<String>,
    resource_version: Option<String>,
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Readable<K> {
    /// Fails for what has not even a name.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        let error = match read(json) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(error) => error,
        };
        let NamedObject { metadata } = serde_json::from_str(json).map_err(D::Error::custom)?;
        let metadata = ObjectMeta {
            name: Some(metadata.name),
            namespace: metadata.namespace,
            resource_version: metadata.resource_version,
            ..ObjectMeta::default()
        };
        Ok(Self(Err(UnreadableObject { metadata, error })))
    }
}

impl<K: Resource> Readable<K> {
    fn metadata(&self) -> &ObjectMeta {
        let Self(object) = self;
        object
            .as_ref()
            .map_or_else(|error| &error.metadata, K::meta)
    }

    pub(crate) fn key(&self) -> Key {
        let metadata = self.metadata();
        Key {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }

    pub(crate) fn version(&self) -> Option<String> {
        self.metadata().resource_version.clone()
    }
}
