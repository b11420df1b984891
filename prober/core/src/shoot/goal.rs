//! Goal for the dependents.

use super::{Direction, Environment, Owner, Shoot};
use crate::moment::Moment;
use crate::plan::Deadline;
use crate::verdict::Scope;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Goal {
    pub direction: Direction,
    pub scope: Scope,
    pub deadline: Deadline,
}

/// The moments of the probe that writes rest on; for a shoot that belongs elsewhere, of the check of
/// its owner record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis {
    pub sent: Moment,
    pub completed: Moment,
}

impl Shoot {
    /// Returns what the last probe asks for. A shoot that belongs elsewhere has nothing to do here,
    /// or is taken down if so configured.
    pub(super) fn goal(&self, env: &Environment<'_>) -> Option<Goal> {
        if self.phase.has_stood_down() {
            passivates_since(env)?;
            return Some(Goal {
                direction: Direction::Down,
                scope: Scope::All,
                deadline: Deadline::Never,
            });
        }
        let (direction, scope) = self.verdict()?.aim()?;
        Some(Goal {
            direction,
            scope,
            deadline: self.finding()?.ordering_deadline,
        })
    }

    pub(super) fn basis(&self, env: &Environment<'_>) -> Option<Basis> {
        if self.phase.has_stood_down() {
            let checked = passivates_since(env)?;
            return Some(Basis {
                sent: checked,
                completed: checked,
            });
        }
        let evidence = self.watch.facts.evidence.as_ref()?;
        Some(Basis {
            sent: evidence.finding.judged_at,
            completed: evidence.completed,
        })
    }
}

/// Returns when the owner record was checked by which a leader takes down what runs here.
fn passivates_since(env: &Environment<'_>) -> Option<Moment> {
    match env.owner {
        Owner::Elsewhere { passivates_since } if env.leads => passivates_since,
        _ => None,
    }
}
