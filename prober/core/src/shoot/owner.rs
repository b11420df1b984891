//! What follows from the owner record: who may write for the shoot here, and what becomes of one
//! that belongs elsewhere.

use chrono::TimeDelta;

use super::{Context, Direction, Environment, Report, Shoot, Start};
use crate::config::OnLoss;
use crate::moment::Moment;
use crate::owner::Standing;
use crate::span;
use crate::verdict::Scope;

impl Shoot {
    /// Stands down when the shoot is lost, and starts afresh when it is ours again: as for a shoot
    /// that may be probed from now on.
    pub(super) fn follow_owner(&mut self, cx: &mut Context<'_>) {
        let lost = cx.env.owner.is_some_and(Standing::is_lost);
        if !std::mem::replace(&mut self.stood_down, lost) || lost {
            return;
        }
        self.drop_scaling(cx);
        let Start {
            eligible,
            in_operation,
        } = self.start;
        let in_operation = in_operation || cx.now >= eligible + span(cx.env.config.initial_delay);
        let fresh = Self::new(
            Start {
                eligible: cx.now,
                in_operation,
            },
            cx.env,
            cx.now,
        );
        let before = std::mem::replace(self, fresh);
        // A probe that is under way will be answered, and what was seen of the dependents stays
        // seen. A replica that does not lead has the one write that it had (D-50), however often
        // the record changes.
        (self.probing, self.known, self.scalings, self.was_paused) = (
            before.probing,
            before.known,
            before.scalings,
            before.was_paused,
        );
        (self.last_direction, self.down_since) = (before.last_direction, before.down_since);
        self.returned = true;
    }

    pub fn has_stood_down(&self) -> bool {
        self.stood_down
    }

    /// What is to be done now: what the probes say; for a shoot that is lost nothing, or that
    /// nothing of it is to run here.
    pub(super) fn aim(&self, env: &Environment<'_>) -> Option<(Direction, Scope)> {
        if self.stood_down {
            return self
                .passivates_since(env)
                .map(|_| (Direction::Down, Scope::All));
        }
        let (direction, scope) = self.verdict()?.aim()?;
        // What a restore that goes on does before the end of initialDelay.
        let early =
            self.continues_restore(env) && self.judged_at(env) < Some(self.delayed_until(env));
        Some((direction, if early { Scope::HeldDown } else { scope }))
    }

    /// When that was asked for which a write rests on (D-52): the probe, or the check of the owner
    /// record.
    pub(super) fn judged_at(&self, env: &Environment<'_>) -> Option<Moment> {
        if self.stood_down {
            self.passivates_since(env)
        } else {
            Some(self.finding.as_ref()?.judged_at)
        }
    }

    /// When levels need not wait for each other any more. Nothing is to be won from a shoot that
    /// belongs elsewhere.
    pub(super) fn ordering_deadline(&self, now: Moment) -> Option<Moment> {
        if self.stood_down {
            Some(now + TimeDelta::MAX)
        } else {
            self.finding.as_ref()?.ordering_deadline
        }
    }

    fn passivates_since(&self, env: &Environment<'_>) -> Option<Moment> {
        let passivates = env
            .config
            .owner_check
            .as_ref()
            .is_some_and(|check| check.on_loss == OnLoss::Passivate);
        match env.owner {
            Some(Standing::Elsewhere { checked }) if passivates && env.leads => checked,
            _ => None,
        }
    }

    /// Whether the owner record allows a write.
    pub(super) fn owner_allows(&self, direction: Direction, env: &Environment<'_>) -> bool {
        match env.owner {
            None | Some(Standing::Ours) => true,
            Some(Standing::NotChecked | Standing::Doubted) => false,
            // As where a pause is not known.
            Some(Standing::Unproven(_)) => direction == Direction::Down && env.leads,
            Some(Standing::Elsewhere { .. } | Standing::Unresolved(_)) => {
                direction == Direction::Down && self.passivates_since(env).is_some()
            }
        }
    }

    /// The same; a write that it prevents is reported once.
    pub(super) fn is_owner(&mut self, direction: Direction, cx: &mut Context<'_>) -> bool {
        let allowed = self.owner_allows(direction, cx.env);
        let prevented = (!allowed).then_some(direction);
        if std::mem::replace(&mut self.prevented, prevented) != prevented && !allowed {
            cx.report(Report::NotOwner(direction));
        }
        allowed
    }
}
