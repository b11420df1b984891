//! EndpointSlices, and what is kept of them.

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use crate::config::Service;
use crate::core::readiness::Slice;

pub const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What is kept of a slice; nothing when it belongs to none of `services`.
pub fn pruned(slice: EndpointSlice, services: &[Service]) -> Option<Slice> {
    let name = slice.metadata.labels?.remove(SERVICE_NAME)?;
    let service = services.iter().position(|service| service.name == name)?;
    let ready = slice.endpoints.unwrap_or_default().into_iter().filter(is_ready).map(identity).collect();
    Some(Slice { service, ready })
}

/// Nobody having said otherwise counts as ready, as the API defines it.
fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
}

/// Both endpoints of a pod with addresses of both families are one; a new pod at an old address is another.
fn identity(endpoint: Endpoint) -> String {
    endpoint.target_ref.and_then(|target| target.uid).unwrap_or_else(|| endpoint.addresses.join(","))
}

#[cfg(test)]
mod tests;
