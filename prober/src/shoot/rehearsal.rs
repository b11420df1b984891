//! What takes the place of flows in a dry run.

use crate::board::Intended;
use crate::core::plan::Direction;
use crate::core::verdict::Scope;
use crate::flow::Flow;

/// Says and counts what flows would write: each write once, for as long as it stays the one that would be made.
#[derive(Debug, Default)]
pub(super) struct Rehearsal {
    /// What would be written at present.
    pub(super) intended: Vec<Intended>,
}

impl Rehearsal {
    /// Takes a flow's place.
    pub(super) fn follow(&mut self, flow: &Flow, direction: Direction, scope: Scope) {
        let before = std::mem::take(&mut self.intended);
        for (resource, observed, write) in flow.intended(direction, scope) {
            let (kind, name) = (resource.kind.clone(), resource.name.clone());
            let after = write.replicas.unwrap_or(observed.replicas);
            let intended = Intended { kind, name, before: observed.replicas, after };
            if !before.contains(&intended) {
                flow.metrics.rehearsed(direction, resource);
                tracing::info!(
                    %resource,
                    direction = direction.as_str(),
                    replicas_before = intended.before,
                    replicas = intended.after,
                    "dry run: resource would be written"
                );
            }
            self.intended.push(intended);
        }
    }
}
