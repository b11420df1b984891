//! The Events of a shoot's task, at the resource itself, or at the agent's Lease where they may not
//! be written there.

use k8s_openapi::api::core::v1::ObjectReference;
use prober_core::config::ResourceRef;
use prober_core::replicas::Change;

use super::AgentReporter;
use crate::driver::Driver;

impl Driver<AgentReporter> {
    pub(super) fn publish_write(&self, resource: &ResourceRef, Change { base, write }: &Change) {
        let before = base.replicas;
        let (reason, message) = match write.replicas {
            Some(0) => {
                let why = match self.machine.has_stood_down() {
                    true => "the shoot belongs to another seed",
                    false => "the nodes have lost the way to their API server",
                };
                let message = format!("Scaled from {before} to 0: {why}");
                return self.publish_warning(resource, &base.uid, "ScaledDown", message);
            }
            Some(replicas) => (
                "ScaledUp",
                format!("Scaled from {before} to {replicas}: the nodes reach their API server"),
            ),
            None if !write.marks.held_down => (
                "ProtectionRemoved",
                format!("Annotations removed, replicas stay at {before}"),
            ),
            None => (
                "ProtectionMarked",
                "Marked again as held down: somebody took the mark".to_owned(),
            ),
        };
        self.shared
            .events
            .normal(&self.about(resource, &base.uid), reason, message);
    }

    /// With an empty UID where that is not known.
    pub(super) fn publish_warning(
        &self,
        resource: &ResourceRef,
        uid: &str,
        reason: &'static str,
        message: String,
    ) {
        self.shared
            .events
            .warning(&self.about(resource, uid), reason, message);
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
