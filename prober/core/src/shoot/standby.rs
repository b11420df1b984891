//! Acts of a replica that does not lead: protect when the leader has not acted, and restore what
//! nobody else does.

use chrono::TimeDelta;

use super::requirement::{Candidate, Standing};
use super::{Action, Context, Direction, Environment, Shoot, Verdict, Verified};
use crate::config::DependentId;
use crate::moment::Moment;
use crate::replicas::PlannedWrite;
use crate::span;

/// The time that the leader has for each step of a scale-down, at a grace of 40 s or more. With the
/// wait for a probe that follows it must be over before the ordering deadline.
const PATIENCE: TimeDelta = TimeDelta::milliseconds(1500);
/// A restore waits for this long, in which all probes say "up".
const RESTORES_AFTER: TimeDelta = TimeDelta::seconds(60);
/// The shortest time between two scale-downs of a resource that others raise while it carries its
/// marker.
const AGAIN_AFTER: TimeDelta = TimeDelta::seconds(10);
/// The wait after the seed could not be read, or refused.
const VERIFIED_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(1);

/// Confirmation by the seed's API server, in this outage, that the shoot is to be protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Verification {
    #[default]
    None,
    Requested,
    Confirmed,
    /// It could not be read, or says otherwise; to be read again at this moment.
    Refused(Moment),
}

impl Shoot {
    /// Returns how it stands with the turn of the leader. In a scale-down it has its time for each
    /// step; what it does not restore is restored after a minute.
    pub(super) fn leaders_turn(&self, write: Candidate, env: &Environment<'_>) -> Standing {
        if !env.options.standby_protects.value {
            return Standing::Blocked;
        }
        match (write.direction, write.scaling) {
            (Direction::Up, _) => self.watch.facts.up.map_or(Standing::Blocked, |up| {
                Standing::Sent(up + RESTORES_AFTER + span(env.options.scale_up_stabilization.value))
            }),
            (Direction::Down, None) => Standing::Met,
            (Direction::Down, Some(_)) => Standing::Sent(self.steps_from(write.id, env)),
        }
    }

    /// Returns from when on a standby may take a step of a scale-down: the leader, whose step it is
    /// at the same moment, has its time first, unless it stops renewing its Lease before or has let
    /// an earlier step go by. What was raised again is left alone for a while besides.
    fn steps_from(&self, id: DependentId, env: &Environment<'_>) -> Moment {
        let dependent = &self.dependents[id];
        let again = self.written_again_at(id);
        let end = if self.stands_in() {
            Moment::START
        } else {
            let due = dependent.step.began.max(self.watch.facts.proven);
            let patience = self
                .finding()
                .map_or(PATIENCE, |finding| finding.grace.scaled(PATIENCE));
            let end = due + patience;
            env.leader_silent_from.map_or(end, |silent| silent.min(end))
        };
        again.map_or(end, |again| again.max(end))
    }

    /// True if this replica has taken a step of the scaling under way.
    fn stands_in(&self) -> bool {
        self.dependents.iter().any(|known| known.step.written)
    }

    /// True if this replica takes part in the scaling under way: a standby, in one that scales down,
    /// only once the leader has let a step go by.
    pub(super) fn takes_part(&self, direction: Direction, env: &Environment<'_>) -> bool {
        env.leads || direction == Direction::Up || self.stands_in()
    }

    /// Reads the seed if it is time.
    pub(super) fn verify(&mut self, cx: &mut Context<'_>) {
        let verification = &mut self.watch.verification;
        let is_due = match verification {
            Verification::None => true,
            Verification::Refused(again) => *again <= cx.now,
            Verification::Requested | Verification::Confirmed => false,
        };
        if is_due {
            *verification = Verification::Requested;
            cx.actions.push(Action::Verify);
        }
    }

    pub(super) fn on_verified(&mut self, verified: Option<Verified>, cx: &mut Context<'_>) {
        if self.watch.verification != Verification::Requested {
            return;
        }
        self.watch.verification = if verified.is_some_and(|verified| self.confirms(verified, cx)) {
            Verification::Confirmed
        } else {
            Verification::Refused(cx.now + VERIFIED_AGAIN_AFTER)
        };
    }

    fn confirms(&mut self, verified: Verified, cx: &mut Context<'_>) -> bool {
        let allowed = verified.is_ours && !verified.is_paused && verified.standby_protects;
        // The next probe may have listed the leases and not yet the nodes.
        let comparable = !self.probes.awaits_nodes();
        if !allowed || !comparable || self.verdict() != Some(Verdict::ScaleDown) {
            return false;
        }
        if self.watch.judge.set_machines(verified.machines) {
            let finding = self.watch.judge.judge(&self.rules(cx.env));
            self.adopt(finding, self.watch.facts.completed(), cx);
        }
        self.verdict() == Some(Verdict::ScaleDown)
    }

    /// True if a write is also for a replica that does not lead: it scales down what is above 0 and
    /// restores what carries the marker, each once between two changes of its own verdict, so that
    /// replicas with different verdicts do not fight. It repairs nothing.
    pub(super) fn is_for_standby(
        &self,
        id: DependentId,
        direction: Direction,
        change: &PlannedWrite,
        now: Moment,
    ) -> bool {
        let marked = change.base.marks.held_down;
        let scales = change.write.replicas.is_some() && (direction == Direction::Down || marked);
        // Whoever raised a marked one was no prober: these remove the marker.
        let is_spent = match self.written_again_at(id) {
            Some(again) => direction == Direction::Up || !marked || again > now,
            None => false,
        };
        scales && !is_spent
    }

    /// Returns when a standby may scale down once more what it has written.
    pub(super) fn written_again_at(&self, id: DependentId) -> Option<Moment> {
        let last = self.dependents[id].written_as_standby?;
        Some(last + AGAIN_AFTER)
    }
}
