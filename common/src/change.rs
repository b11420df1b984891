//! Changes of the objects of one kind, as a watch delivers them.

pub use common_core::change::{Change, Key, Listed};
use kube::{Resource, ResourceExt};

pub fn key_of(object: &impl Resource) -> Key {
    Key {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    }
}
