//! What a replica may do that does not lead (D-50): protect when the leader has not acted, and restore what nobody else does.

use chrono::TimeDelta;

use super::{Action, Context, Direction, Probing, Shoot, Verdict, Verified};
use crate::core::lease::Share;
use crate::core::moment::Moment;
use crate::core::owner::Standing;
use crate::core::replicas::Change;
use crate::core::span;

/// How long the leader has for its write once it may protect, or after a change that others make in mid-outage.
const PATIENCE: Share = Share { ten_thousandths: 375, at_most: TimeDelta::milliseconds(1500) };
/// A marker that others set shows that the leader is at work if it was first seen so shortly before the verdict, or since.
const AT_WORK: TimeDelta = TimeDelta::seconds(5);
/// Then a standby waits until so long after the ordering deadline.
const BEHIND_DEADLINE: Share = Share { ten_thousandths: 250, at_most: TimeDelta::seconds(1) };
/// What is held down is restored after so much time, and so many probes, that all said "up".
const RESTORES_AFTER: TimeDelta = TimeDelta::seconds(60);
const RESTORES_AFTER_PROBES: u32 = 3;
/// A resource above 0 that carries its marker is taken to 0 again at most so often.
const AGAIN_AFTER: TimeDelta = TimeDelta::seconds(10);
/// What could not be read is read again after this time.
const VERIFIED_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(1);

/// Whether the seed's API server itself has shown, in this outage, that the shoot is to be protected.
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
    pub(super) fn standby_may_write(&mut self, direction: Direction, cx: &mut Context<'_>) -> bool {
        if !cx.around.options.standby_protects.value {
            return false;
        }
        match direction {
            Direction::Up => self.has_recovered(cx),
            // The patience is used: what is known of the seed is read again meanwhile.
            Direction::Down => self.is_verified(cx) & self.leader_had_its_time(cx),
        }
    }

    /// Notes since when a leader that judges alike would protect.
    pub(super) fn note_leaders_chance(&mut self, cx: &Context<'_>) {
        let Context { around, now, .. } = cx;
        let acts = self.judged_at().is_some_and(|judged_at| judged_at >= self.acts_from(Direction::Down, cx));
        let owns = matches!(around.owner, None | Some(Standing::Ours));
        let may = self.last_direction == Some(Direction::Down) && acts && around.is_ours && owns && around.paused == Some(false);
        self.leader_may_protect_since = may.then(|| self.leader_may_protect_since.unwrap_or(*now));
    }

    fn leader_had_its_time(&self, cx: &mut Context<'_>) -> bool {
        let (Some((verdict, deadline)), Some(may)) = (self.down_since, self.leader_may_protect_since) else { return false };
        let at_work = self.marker_seen.is_some_and(|seen| seen >= verdict - AT_WORK);
        let behind = deadline.filter(|_| at_work).map(|deadline| deadline + self.share(BEHIND_DEADLINE));
        let from = behind.into_iter().fold(may + self.share(PATIENCE), Moment::max);
        cx.wake_at(from);
        from <= cx.now
    }

    /// Whether the leader still has its time with what others have changed in mid-outage: until then the write is not due yet.
    pub(super) fn leader_comes_first(&self, at: usize, direction: Direction, cx: &mut Context<'_>) -> bool {
        if cx.around.leads || direction == Direction::Up {
            return false;
        }
        let may = self.leader_may_protect_since;
        let Some(changed_at) = self.known[at].changed_by_others_at().filter(|at| may.is_some_and(|may| *at > may)) else {
            return false;
        };
        let from = changed_at + self.share(PATIENCE);
        cx.wake_at(from);
        from > cx.now
    }

    fn share(&self, share: Share) -> TimeDelta {
        self.finding.as_ref().map_or(share.at_most, |finding| finding.grace.share(share))
    }

    fn has_recovered(&self, cx: &mut Context<'_>) -> bool {
        let lasting = RESTORES_AFTER + span(cx.around.options.scale_up_stabilization.value);
        // What the leader has only just taken down is not brought back by a replica that observes something else.
        if let Some(from) = self.marker_seen.map(|seen| seen + lasting).filter(|&from| from > cx.now) {
            cx.wake_at(from);
            return false;
        }
        match (self.up_since, self.judged_at()) {
            (Some((since, probes)), Some(judged_at)) => probes >= RESTORES_AFTER_PROBES && judged_at - since >= lasting,
            _ => false,
        }
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
        // The next probe may have listed the leases and not yet the nodes.
        let comparable = self.verdict() == Some(Verdict::ScaleDown) && self.probing != Probing::Nodes;
        let allowed = |verified: &Verified| verified.is_ours && !verified.is_paused && verified.standby_protects;
        let confirmed = verified.filter(|verified| comparable && allowed(verified)).is_some_and(|verified| {
            if self.judge.set_machines(verified.machines) {
                self.adopt(self.judge.judge(&self.rules(cx.around)), cx);
            }
            self.verdict() == Some(Verdict::ScaleDown)
        });
        self.verification =
            if confirmed { Verification::Confirmed } else { Verification::Refused(cx.now + VERIFIED_AGAIN_AFTER) };
    }

    /// Whether a write is also for a replica that does not lead: it takes down what is above 0 and restores what carries the marker, each
    /// once between two changes of its own verdict, so that replicas with different verdicts do not fight. It repairs nothing.
    pub(super) fn is_a_standbys(&self, at: usize, direction: Direction, change: &Change, cx: &mut Context<'_>) -> bool {
        let marked = change.base.marks.held_down;
        let scales = change.write.replicas.is_some() && (direction == Direction::Down || marked);
        let spent = self.known[at].stood_in.is_some_and(|last| {
            // Whoever brought it up was no prober: these take the marker away.
            let raised = direction == Direction::Down && marked;
            let again = last + AGAIN_AFTER;
            if raised {
                cx.wake_at(again);
            }
            !(raised && again <= cx.now)
        });
        scales && !spent
    }
}
