//! EndpointSlices, pruned to what is read here. Unknown fields are skipped.

use common::objects::metadata;
use go_compat::null::null_as_default;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use weeder_core::config::Config;
use weeder_core::readiness::Slice;

pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";

#[derive(Clone, Debug, Default, Deserialize, Resource)]
#[resource(inherit = EndpointSlice)]
pub(crate) struct PrunedSlice {
    #[serde(default, deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Endpoint {
    #[serde(deserialize_with = "null_as_default")]
    addresses: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    conditions: EndpointConditions,
    target_ref: Option<TargetRef>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct EndpointConditions {
    ready: Option<bool>,
    serving: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct TargetRef {
    uid: Option<String>,
}

impl PrunedSlice {
    /// Keeps what is used of it; `None` if its Service is not configured.
    pub(crate) fn pruned(self, config: &Config) -> Option<Slice> {
        let name = self.metadata.labels?.remove(SERVICE_NAME)?;
        let service = config.services.iter().find(|known| *known.name == *name)?;
        let ready = self.endpoints.into_iter().filter(Endpoint::is_ready);
        Some(Slice {
            service: service.name.clone(),
            ready: ready.map(Endpoint::identity).collect(),
        })
    }
}

impl Endpoint {
    /// A condition that is absent counts as true, as the API defines it. A Service with
    /// publishNotReadyAddresses pins `ready` to true; `serving` is as the pod is (D-75).
    fn is_ready(&self) -> bool {
        let EndpointConditions { ready, serving } = self.conditions;
        ready.unwrap_or(true) && serving.unwrap_or(true)
    }

    /// The two endpoints of a dual-stack pod are one; a new pod at an old address is another.
    fn identity(self) -> String {
        self.target_ref
            .and_then(|target| target.uid)
            .unwrap_or_else(|| self.addresses.join(","))
    }
}

#[cfg(test)]
mod tests;
