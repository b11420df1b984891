//! Pods, pruned to what is read here. Unknown fields are skipped.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};

/// `v1` Pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Pod {
    /// Standard metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How it is.
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

/// Go writes an empty list as null here and there.
pub(crate) fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Resource for Pod {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
