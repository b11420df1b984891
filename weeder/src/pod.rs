//! Pods, pruned to what is read here. Unknown fields are skipped.

use common::objects::metadata;
use go_compat::null::null_as_default;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use weeder_core::pod::{PodSpec, PodStatus};

#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = Pod)]
pub(crate) struct PrunedPod {
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: PodSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: PodStatus,
}
