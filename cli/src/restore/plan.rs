//! What a restore would write, in its order. Pure: what is written is for the prober's core to say.

use prober::Tone;
use prober_core::config::{Dependent, ResourceRef};
use prober_core::replicas::{DependentState, scale_up};
use prober_core::verdict::Scope;
use serde::Serialize;

use crate::output::{count, paint};
use crate::why;

/// What a restore does with one dependent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedStep {
    level: i32,
    #[serde(flatten)]
    pub resource: ResourceRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
    /// Whether anything of it is written: its replicas, or only its annotations.
    pub writes: bool,
    /// To how many replicas it comes back; none when they stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_to: Option<i32>,
    /// The wait before it is scaled, once its level has begun.
    delay_seconds: f64,
    because: String,
    /// Its state could not be read, so that it may be held down or not.
    pub unknown: bool,
    /// What became of it; none when it was not its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(skip)]
    pub failed: bool,
}

/// The steps of all dependents, by level.
pub(crate) fn plan(
    mut dependents: Vec<(&Dependent, DependentState)>,
    scope: Scope,
    only_held_down: bool,
) -> Vec<PlannedStep> {
    dependents.sort_by_key(|(dependent, _)| dependent.scale_up.level);
    let step = |(dependent, state): &(&Dependent, DependentState)| {
        let present = match state {
            DependentState::Present(observed) => Some(observed),
            _ => None,
        };
        let write = present.and_then(|observed| scale_up(observed, scope, only_held_down));
        PlannedStep {
            level: dependent.scale_up.level,
            resource: dependent.resource.clone(),
            replicas: present.map(|observed| observed.replicas),
            writes: write.is_some(),
            restored_to: write.and_then(|write| write.replicas),
            delay_seconds: dependent.scale_up.initial_delay.as_secs_f64(),
            because: why::dependent(dependent, state, only_held_down),
            unknown: *state == DependentState::Unknown,
            outcome: None,
            failed: false,
        }
    };
    dependents.iter().map(step).collect()
}

impl PlannedStep {
    pub(crate) fn row(&self) -> [String; 5] {
        let delay = if self.restored_to.is_some() && self.delay_seconds > 0.0 {
            format!(" (after {} s)", self.delay_seconds)
        } else {
            String::new()
        };
        let tone = if self.writes { Tone::Warn } else { Tone::Soft };
        [
            self.level.to_string(),
            self.resource.to_string(),
            count(self.replicas),
            count(self.restored_to),
            paint(tone, &format!("{}{delay}", self.because)),
        ]
    }
}

#[cfg(test)]
mod tests;
