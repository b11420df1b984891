//! Namespaces, pruned to their annotations.

use common::objects::metadata;
use kube::core::ObjectMeta;
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PrunedNamespace {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
}

common::resource!(
    PrunedNamespace,
    ClusterResourceScope,
    "",
    "v1",
    "Namespace",
    "namespaces"
);
