//! The Events of a shoot's task, at the resource itself, or at the agent's Lease where they may not be written there.

use k8s_openapi::api::core::v1::ObjectReference;

use super::Driver;
use crate::config::ResourceRef;
use crate::core::plan::Direction;
use crate::core::replicas::{Observed, Write};
use crate::write::WriteError;

impl Driver {
    pub(super) fn publish_write(&self, resource: &ResourceRef, observed: &Observed, write: &Write) {
        let about = self.about(resource, &observed.uid);
        let before = observed.replicas;
        match write.replicas {
            Some(0) => {
                let message = format!("Scaled from {before} to 0: the nodes have lost the way to their API server");
                self.shared.events.warning(&about, "ScaledDown", message);
            }
            Some(replicas) => {
                let message = format!("Scaled from {before} to {replicas}: the nodes reach their API server");
                self.shared.events.normal(&about, "ScaledUp", message);
            }
            None if write.marker == Some(crate::core::replicas::Mark::Remove) => {
                self.shared.events.normal(&about, "ProtectionRemoved", format!("Annotations removed, replicas stay at {before}"));
            }
            None => {
                self.shared.events.normal(&about, "ProtectionMarked", "Marked again as held down: somebody took the mark".into())
            }
        }
    }

    pub(super) fn publish_failure(&self, at: usize, direction: Direction, error: &WriteError) {
        let resource = &self.config.dependents[at].resource;
        let uid = self.machine.known().get(at).and_then(|known| known.observed()).map_or("", |observed| &observed.uid);
        let message = format!("Cannot be scaled {}: {error}", direction.as_str());
        self.shared.events.warning(&self.about(resource, uid), "ScalingFailed", message);
    }

    pub(super) fn publish_without_lead(&self, resource: &ResourceRef, direction: Direction, leader: &str) {
        let message = format!(
            "The leader ({leader}) did not act: {} by a replica that does not lead",
            match direction {
                Direction::Down => "taken to 0",
                Direction::Up => "brought back",
            }
        );
        self.shared.events.warning(&self.about(resource, ""), "LeaderDidNotAct", message);
    }

    pub(super) fn publish_keeps_changing(&self, resource: &ResourceRef) {
        let message = "Somebody else keeps writing it while it is being scaled".to_owned();
        self.shared.events.warning(&self.about(resource, ""), "KeepsChanging", message);
    }

    fn about(&self, resource: &ResourceRef, uid: &str) -> ObjectReference {
        ObjectReference {
            api_version: Some(resource.api_version.clone()),
            kind: Some(resource.kind.clone()),
            namespace: Some(self.namespace.clone()),
            name: Some(resource.name.clone()),
            uid: (!uid.is_empty()).then(|| uid.to_owned()),
            ..ObjectReference::default()
        }
    }
}
