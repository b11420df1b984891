//! The writes of a restore, in their order. Pure: the prober's core says what is written.

use prober::{Condition, ShownDependent};
use prober_core::config::Dependent;
use prober_core::replicas::{DependentState, scale_up};
use prober_core::verdict::Scope;
use serde::Serialize;

use crate::output::count;

/// The step of a restore for one dependent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedStep {
    level: i32,
    #[serde(flatten)]
    pub dependent: ShownDependent,
    /// True if anything of it is written: its replicas, or only its annotations.
    pub writes: bool,
    /// Replicas to which it comes back; `None` if they stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_to: Option<i32>,
    /// The wait before it is scaled, once its level has begun.
    delay_seconds: f64,
    /// Outcome; `None` before its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(skip)]
    pub failed: bool,
}

/// The steps of all dependents, by level.
pub(crate) fn plan(mut dependents: Vec<(&Dependent, DependentState)>) -> Vec<PlannedStep> {
    dependents.sort_by_key(|(dependent, _)| dependent.scale_up.level);
    let step = |(dependent, state): &(&Dependent, DependentState)| {
        let write = match state {
            DependentState::Present(observed) => scale_up(observed, Scope::HeldDown, true),
            _ => None,
        };
        PlannedStep {
            level: dependent.scale_up.level,
            dependent: ShownDependent::new(dependent, state, true),
            writes: write.is_some(),
            restored_to: write.and_then(|write| write.replicas),
            delay_seconds: dependent.scale_up.initial_delay.as_secs_f64(),
            outcome: None,
            failed: false,
        }
    };
    dependents.iter().map(step).collect()
}

impl PlannedStep {
    /// True if it could not be read, so that it may be held down or not.
    pub(crate) fn is_unknown(&self) -> bool {
        self.dependent.condition == Condition::Unknown
    }

    pub(crate) fn row(&self) -> [String; 5] {
        let delay = if self.restored_to.is_some() && self.delay_seconds > 0.0 {
            format!(" (after {} s)", self.delay_seconds)
        } else {
            String::new()
        };
        [
            self.level.to_string(),
            self.dependent.resource.to_string(),
            count(self.dependent.replicas),
            count(self.restored_to),
            format!("{}{delay}", self.dependent.because),
        ]
    }
}

#[cfg(test)]
mod tests;
