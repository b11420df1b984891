//! EndpointSlices, pruned to what is read here. Unknown fields are skipped.

use common::objects::metadata;
use go_compat::null::null_as_default;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use weeder_core::config::Services;
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

impl PrunedSlice {
    /// Keeps what is used of it; `None` if its Service is not configured.
    pub(crate) fn pruned(self, services: &Services) -> Option<Slice> {
        let name = self.metadata.labels?.remove(SERVICE_NAME)?;
        let (service, _) = services.get_key_value(&*name)?;
        let ready = self.endpoints.into_iter().filter(is_ready);
        Some(Slice {
            service: service.clone(),
            ready: ready.map(identity).collect(),
        })
    }
}

/// A condition that is absent counts as true, as the API defines it. A Service with
/// publishNotReadyAddresses pins `ready` to true; `serving` is as the pod is (D-75).
fn is_ready(endpoint: &Endpoint) -> bool {
    let conditions = endpoint.conditions.as_ref();
    conditions.is_none_or(|is| is.ready != Some(false) && is.serving != Some(false))
}

/// The two endpoints of a dual-stack pod are one; a new pod at an old address is another.
fn identity(endpoint: Endpoint) -> String {
    let uid = endpoint.target_ref.and_then(|target| target.uid);
    uid.unwrap_or_else(|| endpoint.addresses.join(","))
}

#[cfg(test)]
mod tests;
