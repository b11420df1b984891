//! Consequences of the owner record: who may write for the shoot here, and what happens to one that
//! belongs elsewhere.

use chrono::TimeDelta;

use super::{Context, Direction, Environment, Owner, Report, Shoot, Start};
use crate::moment::Moment;
use crate::verdict::Scope;

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct OwnerState {
    /// Whether the shoot is lost to another seed, as far as is known here: it is neither probed
    /// nor, of its own verdict, written.
    pub stood_down: bool,
    /// Whether it was, so that restores wait for initialDelay.
    pub returned: bool,
    /// In which direction the owner record prevents a write.
    pub prevented: Option<Direction>,
}

impl Shoot {
    /// Stands down when the shoot is lost, and starts again when it is ours again: as for a shoot
    /// that may be probed from now on.
    pub(super) fn follow_owner(&mut self, cx: &mut Context<'_>) {
        let lost = cx.env.owner.is_elsewhere();
        let was_lost = std::mem::replace(&mut self.owner.stood_down, lost);
        if lost || !was_lost {
            return;
        }
        self.abandon(cx);
        let start = Start {
            eligible: cx.now,
            in_operation: self.start.in_operation || cx.now >= self.initial_delay_ends(),
        };
        let before = std::mem::replace(self, Self::new(start, cx.env, cx.now));
        // A probe that is under way will be answered, and what was seen of the dependents stays
        // seen. A replica that does not lead has the one write that it had (D-50), however often
        // the record changes.
        self.probing.phase = before.probing.phase;
        self.dependents = before.dependents;
        self.scaling.begun = before.scaling.begun;
        self.permission.was_paused = before.permission.was_paused;
        self.verdicts.direction = before.verdicts.direction;
        self.verdicts.down = before.verdicts.down;
        self.owner.returned = true;
    }

    pub fn has_stood_down(&self) -> bool {
        self.owner.stood_down
    }

    /// What is to be done now: what the probes say; for a shoot that is lost nothing, or that
    /// nothing of it is to run here.
    pub(super) fn aim(&self, env: &Environment<'_>) -> Option<(Direction, Scope)> {
        if self.owner.stood_down {
            self.passivates_since(env)?;
            return Some((Direction::Down, Scope::All));
        }
        let (direction, scope) = self.verdict()?.aim()?;
        // What a restore that goes on does before the end of initialDelay.
        let early =
            self.continues_restore() && self.judged_at(env) < Some(self.initial_delay_ends());
        Some((direction, if early { Scope::HeldDown } else { scope }))
    }

    /// When that was asked for which a write rests on (D-52): the probe, or the check of the owner
    /// record.
    pub(super) fn judged_at(&self, env: &Environment<'_>) -> Option<Moment> {
        if self.owner.stood_down {
            self.passivates_since(env)
        } else {
            Some(self.finding()?.judged_at)
        }
    }

    /// When levels need not wait for each other any more. Nothing is to be won from a shoot that
    /// belongs elsewhere.
    pub(super) fn ordering_deadline(&self, now: Moment) -> Option<Moment> {
        if self.owner.stood_down {
            Some(now + TimeDelta::MAX)
        } else {
            self.finding()?.ordering_deadline
        }
    }

    fn passivates_since(&self, env: &Environment<'_>) -> Option<Moment> {
        match env.owner {
            Owner::Elsewhere { passivates_since } if env.leads => passivates_since,
            _ => None,
        }
    }

    /// True if the owner record allows a write.
    pub(super) fn owner_allows(&self, direction: Direction, env: &Environment<'_>) -> bool {
        let protects = direction == Direction::Down && env.leads;
        match env.owner {
            Owner::Here => true,
            Owner::Unknown => false,
            Owner::LeaderOnly => protects,
            Owner::Elsewhere { passivates_since } => protects && passivates_since.is_some(),
        }
    }

    /// Whether the owner record allows a write; one that it prevents is reported once.
    pub(super) fn is_owner(&mut self, direction: Direction, cx: &mut Context<'_>) -> bool {
        let allowed = self.owner_allows(direction, cx.env);
        let prevented = (!allowed).then_some(direction);
        let before = std::mem::replace(&mut self.owner.prevented, prevented);
        if prevented.is_some() && prevented != before {
            cx.report(Report::NotOwner(direction));
        }
        allowed
    }
}
