//! Decision on a write: may it be made? It is read from top to bottom: what forbids it, its time, its
//! evidence. Nothing in here has a side effect: asked twice, it says the same.

use chrono::TimeDelta;
use strum::{IntoStaticStr, VariantArray};

use super::{Course, Direction, Environment, Evidence, Shoot};
use crate::config::DependentId;
use crate::moment::Moment;
use crate::span;

/// Time that the leader has for the steps of a scale-down before a standby takes one, at a grace of
/// 40 s or more, in proportion to it below (D-85). With the wait for an answer that follows it, it is
/// to be shorter than [`RECENT`]: else a standby whose shoot falls silent after the verdict has no
/// answer left to write by. What it costs is measured by `make bench-race REPLICAS=2 KILL=1`.
const PATIENCE: TimeDelta = TimeDelta::milliseconds(1500);
/// Time for which all probes must say "up" before a standby restores what the leader does not.
const RESTORES_AFTER: TimeDelta = TimeDelta::seconds(60);
/// The longest wait of protection for an answer since its time: a slow API server must not cost the
/// last seconds before nodes are marked Unknown.
const AWAITS_ANSWER: TimeDelta = TimeDelta::seconds(2);
/// Greatest age of the answer that a standby's protective write rests on; of any other write twice
/// that, since a leader probes every 5 s in a restore.
const RECENT: TimeDelta = TimeDelta::seconds(5);

/// Reason for which a write waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Reason {
    /// The Cluster is not on this seed, or wants no probes.
    NotOurs,
    /// The owner record does not name this seed.
    NotOwned,
    /// Operators want nothing written, or may want that.
    Paused,
    /// The seed's Clusters are not seen, or no probe was sent since they are.
    SeedUnseen,
    /// The shoot has not been eligible for initialDelay.
    InitialDelay,
    /// Its level is not open, or its delay not over.
    Order,
    /// Leadership, config, settings or what forbids a write have changed.
    Terms,
    /// The verdict has not been "up" for the configured time.
    Stabilization,
    /// It is the leader's turn.
    Leader,
    /// Others have undone the last write.
    Undone,
    /// The last attempt failed.
    Backoff,
    /// The dependent has changed since the last probe.
    Changed,
    /// No probe was answered lately.
    Answer,
    /// Other writes go first.
    Permit,
}

#[cfg(test)]
thread_local! {
    /// A reason for which no write waits.
    pub(crate) static SWITCHED_OFF: std::cell::Cell<Option<Reason>> =
        const { std::cell::Cell::new(None) };
}

impl Reason {
    /// True if it is not for this replica to write, whatever the probes say.
    pub(super) const fn forbids(self) -> bool {
        matches!(self, Self::NotOurs | Self::NotOwned | Self::Paused)
    }

    /// True but for one that a test has switched off.
    fn counts(self) -> bool {
        #[cfg(test)]
        if SWITCHED_OFF.get() == Some(self) {
            return false;
        }
        true
    }

    /// Fails if it counts, until an input changes something.
    fn unless(self, is_met: bool) -> Result<(), Waits> {
        if is_met || !self.counts() {
            return Ok(());
        }
        Err(Waits::new(self))
    }

    /// Fails before a moment.
    fn until(self, moment: Moment, now: Moment) -> Result<(), Waits> {
        if moment <= now || !self.counts() {
            return Ok(());
        }
        Err(Waits {
            until: Some(moment),
            ..Waits::new(self)
        })
    }
}

/// A wait of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waits {
    pub reason: Reason,
    /// The end of the wait, where it ends by itself.
    pub until: Option<Moment>,
    /// Time from which on a probe is to be sent or answered, if that is what it waits for.
    pub(super) answer: Option<Moment>,
}

impl Waits {
    pub fn new(reason: Reason) -> Self {
        Self {
            reason,
            until: None,
            answer: None,
        }
    }

    fn for_answer(reason: Reason, answer: Moment, until: Option<Moment>) -> Self {
        Self {
            reason,
            until,
            answer: Some(answer),
        }
    }

    /// True if it ends by itself, or by what is under way; but not of one that is to slow writes down.
    pub(super) fn is_soon(self) -> bool {
        let ends = self.answer.is_some() || self.until.is_some() || self.reason == Reason::Order;
        ends && !matches!(self.reason, Reason::Undone | Reason::Backoff)
    }
}

impl Shoot {
    /// Returns since when a write is due, if it may be made now. One of which it is not known what is
    /// to be written needs no evidence: that is found out by trying.
    pub(super) fn decide(
        &self,
        id: DependentId,
        is_known: bool,
        direction: Direction,
        env: &Environment,
        now: Moment,
    ) -> Result<Moment, Waits> {
        let (Some(evidence), Some(course)) = (&self.evidence, self.course) else {
            return Err(Waits::new(Reason::Answer));
        };
        self.is_permitted(id, direction, env)?;
        let (due, reason) = self.time(id, direction, course, evidence, env)?;
        reason.until(due, now)?;
        Reason::Backoff.until(self.dependents[id.0].again_at, now)?;
        if is_known {
            self.is_up_to_date(id, direction, evidence, env)?;
            self.is_answered(direction, (due, reason), course, evidence, env, now)?;
        }
        Ok(due)
    }

    /// Fails if something forbids it.
    fn is_permitted(
        &self,
        id: DependentId,
        direction: Direction,
        env: &Environment,
    ) -> Result<(), Waits> {
        if let Some(reason) = self.terms.forbidden[direction] {
            reason.unless(false)?;
        }
        Reason::SeedUnseen.unless(env.seed_since[direction].is_some())?;
        let known = &self.dependents[id.0];
        Reason::Order.unless(known.open.is_some())?;
        // Whoever raised a marked one was no prober; a standby that was undone by one leaves it.
        let may_repeat = direction == Direction::Down && known.is_held_down();
        Reason::Leader.unless(env.goes_first() || known.written.is_none() || may_repeat)
    }

    /// Its time: the latest of all that delays it, and what that is.
    fn time(
        &self,
        id: DependentId,
        direction: Direction,
        course: Course,
        evidence: &Evidence,
        env: &Environment,
    ) -> Result<(Moment, Reason), Waits> {
        let known = &self.dependents[id.0];
        let delay = span(direction.info(env.config.dependent(id)).initial_delay);
        let delayed = known.open.unwrap_or(Moment::START) + delay;
        let delayed = match direction {
            Direction::Up => delayed.max(known.due()),
            Direction::Down => course.by_deadline(known.due(), delayed),
        };
        let mut times = vec![
            (self.terms.since, Reason::Terms),
            (self.start.writes_from(direction, env), Reason::InitialDelay),
            (delayed, Reason::Order),
        ];
        if direction == Direction::Up {
            let stable = span(env.options.scale_up_stabilization.value);
            let (wait, reason) = match env.goes_first() {
                true => (stable, Reason::Stabilization),
                false => (stable + RESTORES_AFTER, Reason::Leader),
            };
            reason.unless(self.up_since.is_some())?;
            times.extend(self.up_since.map(|since| (since + wait, reason)));
        }
        let again = known.again_from(env.goes_first());
        times.extend(again.map(|again| (again, Reason::Undone)));
        let counting = times.into_iter().filter(|(_, reason)| reason.counts());
        let (due, reason) = counting.max().unwrap_or((Moment::START, Reason::Order));
        let is_leaders = direction == Direction::Down && !env.goes_first() && !self.stands_in();
        if is_leaders && Reason::Leader.counts() {
            let patience = due + evidence.finding.grace.scaled(PATIENCE);
            let silent = env.leader_silent_from.map(|silent| silent.max(due));
            let due = silent.map_or(patience, |silent| patience.min(silent));
            return Ok((due, Reason::Leader));
        }
        Ok((due, reason))
    }

    /// Its evidence was asked for since all that it rests on is as it is.
    fn is_up_to_date(
        &self,
        id: DependentId,
        direction: Direction,
        evidence: &Evidence,
        env: &Environment,
    ) -> Result<(), Waits> {
        let sent = evidence.finding.judged_at;
        let seen = env.seed_since[direction].unwrap_or(Moment::START);
        if sent < seen && Reason::SeedUnseen.counts() {
            return Err(Waits::for_answer(Reason::SeedUnseen, seen, None));
        }
        let changed = self.dependents[id.0].view.changed();
        let is_old = changed.is_some_and(|changed| sent <= changed);
        // Nodes must be seen to renew after the newest marker.
        let is_unproven = direction == Direction::Up && evidence.completed <= self.marked_after;
        if (is_old || is_unproven) && Reason::Changed.counts() {
            let since = changed.unwrap_or(Moment::START).max(self.marked_after);
            return Err(Waits::for_answer(Reason::Changed, since, None));
        }
        Ok(())
    }

    /// Its evidence is new: of the same terms, answered since its time, and of the last seconds. What
    /// is begun in an outage goes on by what is known when new terms bring no answer. Protection waits
    /// for an answer for 2 s at most, and not past the ordering deadline; a leader's not at all while
    /// probes fail.
    fn is_answered(
        &self,
        direction: Direction,
        (due, reason): (Moment, Reason),
        course: Course,
        evidence: &Evidence,
        env: &Environment,
        now: Moment,
    ) -> Result<(), Waits> {
        let (sent, since) = (evidence.finding.judged_at, self.terms.since);
        let is_down = direction == Direction::Down;
        let fails = self.probe.failures > 0;
        if sent < since && Reason::Terms.counts() {
            let goes_on = is_down && self.holds_down();
            let until = course.deadline.max(since + AWAITS_ANSWER);
            if !(goes_on && (until <= now || fails)) {
                let until = goes_on.then_some(until);
                return Err(Waits::for_answer(Reason::Terms, since, until));
            }
        }
        let lapses = match direction {
            Direction::Up => None,
            Direction::Down if env.goes_first() && fails => Some(due),
            Direction::Down => Some(course.by_deadline(due, due + AWAITS_ANSWER)),
        };
        let wanted = match lapses {
            Some(lapses) if lapses <= now => Moment::START,
            _ => due,
        };
        let longest = if is_down && !env.goes_first() {
            RECENT
        } else {
            RECENT * 2
        };
        let oldest = wanted.max(now - longest);
        if evidence.completed < oldest && Reason::Answer.counts() {
            let reason = if wanted < oldest {
                Reason::Answer
            } else {
                reason
            };
            return Err(Waits::for_answer(reason, oldest, lapses));
        }
        Ok(())
    }

    /// True if this replica has taken a step in this course.
    pub(super) fn stands_in(&self) -> bool {
        self.dependents.iter().any(|known| known.written.is_some())
    }
}

impl Course {
    /// A moment, but no later than the ordering deadline, and no earlier than another one.
    pub(super) fn by_deadline(self, earliest: Moment, moment: Moment) -> Moment {
        moment.min(self.deadline).max(earliest)
    }
}
