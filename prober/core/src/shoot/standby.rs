//! What a replica may do that does not lead (D-50): protect when the leader has not acted, and
//! restore what nobody else does.

use chrono::TimeDelta;

use super::probing::ProbePhase;
use super::verdicts::UpSince;
use super::{Action, Context, Direction, Environment, Shoot, Verdict, Verified};
use crate::config::DependentId;
use crate::lease::GraceShare;
use crate::moment::Moment;
use crate::replicas::PlannedWrite;
use crate::scaling::Scaling;
use crate::span;

/// How long the leader has for each step of a scale-down.
const PATIENCE: GraceShare = GraceShare {
    basis_points: 375,
    at_most: TimeDelta::milliseconds(1500),
};
/// The longest wait for a probe since then. A slow API server must not cost the last seconds before
/// nodes are marked Unknown.
const AWAITS_PROBE: TimeDelta = TimeDelta::seconds(2);
/// How long a standby may write by a probe after its answer: by older ones healthy shoots were taken
/// down in simulated lives.
const LASTS: TimeDelta = TimeDelta::seconds(5);
/// What is held down is restored after so much time, and so many probes, that all said "up".
const RESTORES_AFTER: TimeDelta = TimeDelta::seconds(60);
const RESTORES_AFTER_PROBES: u32 = 3;
/// A resource above 0 that carries its marker is taken to 0 again at most so often.
const AGAIN_AFTER: TimeDelta = TimeDelta::seconds(10);
/// What could not be read is read again after this time.
const VERIFIED_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(1);

/// Whether the seed's API server itself has shown, in this outage, that the shoot is to be
/// protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Verification {
    #[default]
    None,
    Requested,
    Confirmed,
    /// It could not be read, or says otherwise; to be read again at this moment.
    Refused(Moment),
}

impl Shoot {
    /// Since when, or from when on, a standby may write; none while that is not known. In a
    /// scale-down each step has a turn of its own besides.
    pub(super) fn standbys_turn(
        &self,
        direction: Direction,
        env: &Environment<'_>,
    ) -> Option<Moment> {
        if !env.options.standby_protects.value {
            return None;
        }
        match direction {
            Direction::Up => self.restores_from(env),
            Direction::Down => Some(Moment::START),
        }
    }

    /// Whether a step of a scale-down is this replica's to take by the last probe. A leader's are; a
    /// standby's are once the leader has had its time, in which the seed is read again, and a probe
    /// was sent since or, if none is answered soon, at least answered recently. If not, a later one
    /// is requested.
    pub(super) fn has_its_turn(
        &mut self,
        scaling: Scaling,
        id: DependentId,
        judged_at: Moment,
        cx: &mut Context<'_>,
    ) -> bool {
        if cx.env.leads || scaling.direction == Direction::Up {
            return true;
        }
        let is_verified = self.is_verified(cx);
        let from = self.steps_from(id, cx.env);
        cx.wake_at(from);
        if from > cx.now {
            return false;
        }
        let was_sent_since = judged_at >= from;
        let is_recent = cx.now <= self.probing.completed + LASTS;
        let waits_until = from + AWAITS_PROBE;
        if !was_sent_since || !is_recent {
            self.probing.soon(from.max(cx.now - LASTS), cx.now);
            cx.wake_at(waits_until);
        }
        is_verified && is_recent && (was_sent_since || waits_until <= cx.now)
    }

    /// From when on a standby may take a step of a scale-down: the leader, whose step it is at the
    /// same moment, has its time first, unless it stops renewing its Lease before (D-61) or has let
    /// an earlier step go by. What was raised again is left alone for a while besides.
    fn steps_from(&self, id: DependentId, env: &Environment<'_>) -> Moment {
        let dependent = &self.dependents[id];
        let again = dependent.written_as_standby.map(|last| last + AGAIN_AFTER);
        let end = if self.stands_in() {
            Moment::START
        } else {
            let end = dependent.step.began + self.share(PATIENCE);
            env.leader_silent_from.map_or(end, |silent| silent.min(end))
        };
        again.map_or(end, |again| again.max(end))
    }

    /// Whether this replica has taken a step of the scaling under way.
    fn stands_in(&self) -> bool {
        self.dependents.iter().any(|known| known.step.written)
    }

    /// Whether this replica takes part in the scaling under way: a standby, in one that takes down,
    /// only once the leader has let a step go by.
    pub(super) fn takes_part(&self, direction: Direction, env: &Environment<'_>) -> bool {
        env.leads || direction == Direction::Up || self.stands_in()
    }

    fn share(&self, share: GraceShare) -> TimeDelta {
        self.finding()
            .map_or(share.at_most, |finding| finding.grace.share(share))
    }

    /// What the leader has only just taken down is not brought back by a replica that observes
    /// something else.
    fn restores_from(&self, env: &Environment<'_>) -> Option<Moment> {
        let UpSince { at, probes } = self.verdicts.up?;
        let lasting = RESTORES_AFTER + span(env.options.scale_up_stabilization.value);
        (probes >= RESTORES_AFTER_PROBES).then(|| self.markers.seen.max(at) + lasting)
    }

    fn is_verified(&mut self, cx: &mut Context<'_>) -> bool {
        match self.verification {
            Verification::Confirmed => return true,
            Verification::Requested => {}
            Verification::Refused(again) if again > cx.now => cx.wake_at(again),
            Verification::None | Verification::Refused(_) => {
                self.verification = Verification::Requested;
                cx.actions.push(Action::Verify);
            }
        }
        false
    }

    pub(super) fn on_verified(&mut self, verified: Option<Verified>, cx: &mut Context<'_>) {
        if self.verification != Verification::Requested {
            return;
        }
        self.verification = if verified.is_some_and(|verified| self.confirms(verified, cx)) {
            Verification::Confirmed
        } else {
            Verification::Refused(cx.now + VERIFIED_AGAIN_AFTER)
        };
    }

    fn confirms(&mut self, verified: Verified, cx: &mut Context<'_>) -> bool {
        let allowed = verified.is_ours && !verified.is_paused && verified.standby_protects;
        // The next probe may have listed the leases and not yet the nodes.
        let comparable = self.probing.phase != ProbePhase::Nodes;
        if !allowed || !comparable || self.verdict() != Some(Verdict::ScaleDown) {
            return false;
        }
        if self.judge.set_machines(verified.machines) {
            self.adopt(self.judge.judge(&self.rules(cx.env)), cx);
        }
        self.verdict() == Some(Verdict::ScaleDown)
    }

    /// Whether a write is also for a replica that does not lead: it takes down what is above 0 and
    /// restores what carries the marker, each once between two changes of its own verdict, so that
    /// replicas with different verdicts do not fight. It repairs nothing.
    pub(super) fn standby_may_apply(
        &self,
        id: DependentId,
        direction: Direction,
        change: &PlannedWrite,
        cx: &mut Context<'_>,
    ) -> bool {
        let marked = change.base.marks.held_down;
        let scales = change.write.replicas.is_some() && (direction == Direction::Down || marked);
        let spent = self.dependents[id].written_as_standby.is_some_and(|last| {
            // Whoever brought it up was no prober: these take the marker away.
            let raised = direction == Direction::Down && marked;
            let again = last + AGAIN_AFTER;
            if raised {
                cx.wake_at(again);
            }
            !raised || again > cx.now
        });
        scales && !spent
    }
}
