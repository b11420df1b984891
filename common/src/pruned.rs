//! Types of the API pruned to what is read of them: `serde` skips the other fields.

use serde::{Deserialize, Deserializer};

/// Go writes an empty list as null here and there, and takes a null for a value with nothing set.
///
/// # Errors
/// When something else than a `T` or a null is there.
pub fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Lets kube list and watch a pruned type, which has a field `metadata`: its scope in `kube::core`, group, version, kind and plural.
#[macro_export]
macro_rules! resource {
    ($type:ty, $scope:ident, $group:literal, $version:literal, $kind:literal, $plural:literal) => {
        impl ::kube::Resource for $type {
            type DynamicType = ();
            type Scope = ::kube::core::$scope;
            fn kind((): &()) -> ::std::borrow::Cow<'_, str> {
                $kind.into()
            }
            fn group((): &()) -> ::std::borrow::Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> ::std::borrow::Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> ::std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &::kube::core::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ::kube::core::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
