//! What a restore would write, in its order. Pure: what is written is for the prober's core to say.

use prober_core::config::{Dependent, ResourceRef};
use prober_core::replicas::{DependentState, scale_up};
use prober_core::verdict::Scope;
use serde::Serialize;

use crate::why;

/// The turn of one dependent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    pub(crate) level: i32,
    #[serde(flatten)]
    pub(crate) resource: ResourceRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replicas: Option<i32>,
    /// Whether anything of it is written: its replicas, or only its annotations.
    pub(crate) writes: bool,
    /// To how many replicas it comes back; none when they stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restored_to: Option<i32>,
    /// The wait before it is scaled, once its level has begun.
    pub(crate) delay_seconds: f64,
    pub(crate) because: String,
    /// Its state could not be read, so that it may be held down or not.
    pub(crate) unknown: bool,
    /// What became of it; none when it was not its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
}

/// The steps for all dependents, in their order; `states` are theirs.
pub(crate) fn plan(
    dependents: &[Dependent],
    states: &[DependentState],
    scope: Scope,
    only_held_down: bool,
) -> Vec<Step> {
    let step = |(dependent, state): (&Dependent, &DependentState)| {
        let present = match state {
            DependentState::Present(observed) => Some(observed),
            _ => None,
        };
        let write = present.and_then(|observed| scale_up(observed, scope, only_held_down));
        Step {
            level: dependent.scale_up.level,
            resource: dependent.resource.clone(),
            replicas: present.map(|observed| observed.replicas),
            writes: write.is_some(),
            restored_to: write.and_then(|write| write.replicas),
            delay_seconds: dependent.scale_up.initial_delay.as_secs_f64(),
            because: why::dependent(dependent, state, only_held_down),
            unknown: *state == DependentState::Unknown,
            outcome: None,
        }
    };
    let mut in_order: Vec<_> = dependents.iter().zip(states).collect();
    in_order.sort_by_key(|(dependent, _)| dependent.scale_up.level);
    in_order.into_iter().map(step).collect()
}

#[cfg(test)]
mod tests;
