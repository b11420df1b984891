//! What a replica may do that does not lead (D-50): protect when the leader has not acted, and
//! restore what nobody else does.

use chrono::TimeDelta;

use super::probing::ProbePhase;
use super::verdicts::UpSince;
use super::{Action, Context, Direction, Environment, Shoot, Verdict, Verified};
use crate::config::DependentId;
use crate::lease::GraceShare;
use crate::moment::Moment;
use crate::owner::Ownership;
use crate::replicas::PlannedWrite;
use crate::span;

/// How long the leader has for its write once it may protect, or after a change that others make in
/// mid-outage.
const PATIENCE: GraceShare = GraceShare {
    basis_points: 375,
    at_most: TimeDelta::milliseconds(1500),
};
/// A marker that others set shows that the leader is at work if it was first seen so shortly before
/// the verdict, or since.
const AT_WORK: TimeDelta = TimeDelta::seconds(5);
/// Then a standby waits until so long after the ordering deadline.
const BEHIND_DEADLINE: GraceShare = GraceShare {
    basis_points: 250,
    at_most: TimeDelta::seconds(1),
};
/// What is held down is restored after so much time, and so many probes, that all said "up".
const RESTORES_AFTER: TimeDelta = TimeDelta::seconds(60);
const RESTORES_AFTER_PROBES: u32 = 3;
/// A resource above 0 that carries its marker is taken to 0 again at most so often.
const AGAIN_AFTER: TimeDelta = TimeDelta::seconds(10);
/// What could not be read is read again after this time.
const VERIFIED_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(1);

#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Standby {
    /// Since when a leader that judges alike would protect: in an outage, with no pause, and
    /// initialDelay over.
    pub leader_may_protect_since: Option<Moment>,
    pub verification: Verification,
}

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

/// The end of the time that a leader has: earlier if it stops renewing its Lease before (D-61).
fn unless_silent(end: Moment, env: &Environment<'_>) -> Moment {
    env.leader_silent_from.map_or(end, |silent| silent.min(end))
}

impl Shoot {
    /// Since when, or from when on, it is a standby's turn; none while that is not known.
    pub(super) fn standbys_turn(
        &mut self,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Option<Moment> {
        if !cx.env.options.standby_protects.value {
            return None;
        }
        match direction {
            Direction::Up => self.restores_from(cx.env),
            // The patience is used: what is known of the seed is read again meanwhile.
            Direction::Down => {
                let from = self.leader_had_its_time_from(cx.env)?;
                let verifies_from = from - self.share(PATIENCE);
                cx.wake_at(verifies_from);
                (verifies_from <= cx.now && self.is_verified(cx)).then_some(from)
            }
        }
    }

    /// Notes since when, or from when on, a leader that judges alike would protect.
    pub(super) fn update_leader_grace(&mut self, cx: &Context<'_>) {
        let env = cx.env;
        let owns = matches!(env.owner, None | Some(Ownership::Ours));
        let may = self.verdicts.is_down() && env.is_ours && owns && env.paused == Some(false);
        let before = self.standby.leader_may_protect_since;
        let since = may.then(|| before.unwrap_or(cx.now));
        self.standby.leader_may_protect_since =
            since.max(since.and(self.writes_from(Direction::Down, env)));
    }

    fn leader_had_its_time_from(&self, env: &Environment<'_>) -> Option<Moment> {
        let (down, may) = self
            .verdicts
            .down
            .zip(self.standby.leader_may_protect_since)?;
        let at_work = self
            .markers
            .by_others
            .is_some_and(|seen| seen >= down.at - AT_WORK);
        let behind = down
            .ordering_deadline
            .filter(|_| at_work)
            .map(|deadline| deadline + self.share(BEHIND_DEADLINE));
        let end = Some(may + self.share(PATIENCE)).max(behind)?;
        Some(unless_silent(end, env))
    }

    /// From when on a standby may write what others have changed in mid-outage: the leader has its
    /// time with it first.
    pub(super) fn standbys_turn_with(
        &self,
        id: DependentId,
        direction: Direction,
        env: &Environment<'_>,
    ) -> Option<Moment> {
        if env.leads || direction == Direction::Up {
            return None;
        }
        let may = self.standby.leader_may_protect_since?;
        let changed = self.dependents[id]
            .changed_by_others_at()
            .filter(|&changed| changed > may)?;
        Some(unless_silent(changed + self.share(PATIENCE), env))
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
        (probes >= RESTORES_AFTER_PROBES)
            .then(|| self.markers.by_others.map_or(at, |seen| seen.max(at)) + lasting)
    }

    fn is_verified(&mut self, cx: &mut Context<'_>) -> bool {
        match self.standby.verification {
            Verification::Confirmed => return true,
            Verification::Requested => {}
            Verification::Refused(again) if again > cx.now => cx.wake_at(again),
            Verification::None | Verification::Refused(_) => {
                self.standby.verification = Verification::Requested;
                cx.actions.push(Action::Verify);
            }
        }
        false
    }

    pub(super) fn on_verified(&mut self, verified: Option<Verified>, cx: &mut Context<'_>) {
        if self.standby.verification != Verification::Requested {
            return;
        }
        self.standby.verification = if verified.is_some_and(|verified| self.confirms(verified, cx))
        {
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
