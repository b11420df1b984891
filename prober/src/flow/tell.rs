//! What a flow tells operators: Events.

use k8s_openapi::api::core::v1::ObjectReference;

use super::Flow;
use crate::config::ResourceRef;
use crate::core::memory::{Observed, Write};
use crate::core::plan::Direction;
use crate::write::WriteError;

impl Flow {
    /// Tells operators at the resource itself, or at the agent's Lease where Events may not be written there.
    pub(super) fn tell_write(&self, resource: &ResourceRef, observed: &Observed, write: &Write) {
        let about = about(resource, &self.namespace, &observed.uid);
        let before = observed.replicas;
        match write.replicas {
            Some(0) => {
                let message = format!("Scaled from {before} to 0: the nodes have lost the way to their API server");
                self.events.warning(&about, "ScaledDown", message);
            }
            Some(replicas) => {
                let message = format!("Scaled from {before} to {replicas}: the nodes reach their API server");
                self.events.normal(&about, "ScaledUp", message);
            }
            None => self.events.normal(&about, "ProtectionRemoved", format!("Annotations removed, replicas stay at {before}")),
        }
    }

    pub(super) fn tell_failure(&self, resource: &ResourceRef, direction: Direction, error: &WriteError) {
        let uid = self.seed.dependent(resource).and_then(|view| view.observed(&self.namespace).ok()?);
        let about = about(resource, &self.namespace, uid.as_ref().map_or("", |observed| &observed.uid));
        self.events.warning(&about, "ScalingFailed", format!("Cannot be scaled {}: {error}", direction.as_str()));
    }
}

/// What Events about a dependent refer to.
fn about(resource: &ResourceRef, namespace: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(resource.api_version.clone()),
        kind: Some(resource.kind.clone()),
        namespace: Some(namespace.to_owned()),
        name: Some(resource.name.clone()),
        uid: (!uid.is_empty()).then(|| uid.to_owned()),
        ..ObjectReference::default()
    }
}
