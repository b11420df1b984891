//! What a watch shows of the objects of one kind.

pub use common_core::change::{Change, Key, Listed};
use kube::{Resource, ResourceExt};

pub fn key_of(object: &impl Resource) -> Key {
    Key {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    }
}
