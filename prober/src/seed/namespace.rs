//! Namespaces, pruned to their annotations.

use common::objects::metadata;
use k8s_openapi::api::core::v1::Namespace;
use kube::Resource;
use kube::core::ObjectMeta;
use serde::Deserialize;

#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = Namespace)]
pub(super) struct PrunedNamespace {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
}
