//! Pods, pruned to what is read here. Unknown fields are skipped.

use common::pruned::null_as_default;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Pod {
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: PodStatus,
}

/// Of a pod's status, what matters. Ephemeral containers do not: nobody restarts them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    #[serde(deserialize_with = "null_as_default")]
    container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "null_as_default")]
    init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerStatus {
    #[serde(deserialize_with = "null_as_default")]
    state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Waiting>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: Option<String>,
}

impl PodStatus {
    /// Why containers wait, also init containers.
    pub fn waiting_reasons(&self) -> impl Iterator<Item = &str> {
        let containers = self.container_statuses.iter().chain(&self.init_container_statuses);
        containers.filter_map(|container| container.state.waiting.as_ref()?.reason.as_deref())
    }
}

common::resource!(Pod, NamespaceResourceScope, "", "v1", "Pod", "pods");
