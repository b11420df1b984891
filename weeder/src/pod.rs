//! Pods, pruned to what is read here. Unknown fields are skipped.

use common::objects::metadata;
use go_compat::null::null_as_default;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use weeder_core::pod::{PodSpec, PodStatus};

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct PrunedPod {
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub spec: PodSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: PodStatus,
}

common::resource!(PrunedPod, NamespaceResourceScope, "", "v1", "Pod", "pods");
