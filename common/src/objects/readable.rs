//! An object that may be unreadable.

use common_core::change::Key;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{metadata, read};

/// An object of a list or a watch, or why it cannot be read.
///
/// kube's `DeserializeGuard` would do the same, but builds a tree of the whole object: that fails
/// where it is nested deeply, and takes hundreds of times its size where it has many small values.
#[derive(Clone, Debug)]
pub struct Readable<K>(pub Result<K, UnreadableObject>);

#[derive(Clone, Debug, Deserialize)]
pub struct UnreadableObject {
    #[serde(deserialize_with = "metadata")]
    pub(crate) metadata: ObjectMeta,
    #[serde(skip)]
    pub(crate) error: String,
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Readable<K> {
    /// Fails for what has no metadata: nobody could tell which object it is.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        let error = match read(json) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(error) => error,
        };
        let object: UnreadableObject = serde_json::from_str(json).map_err(D::Error::custom)?;
        Ok(Self(Err(UnreadableObject { error, ..object })))
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
