//! Types of the API pruned to what is read of them: `serde` skips the other fields.

/// Lets kube list and watch a pruned type, which has a field `metadata`: its scope in `kube::core`,
/// group, version, kind and plural.
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
