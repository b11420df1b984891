//! The conditions of a write, as one table, and the decision that follows from it. Nothing in here
//! has a side effect: asked twice, it says the same.

use chrono::TimeDelta;
use strum::{IntoStaticStr, VariantArray};

use super::goal::Basis;
use super::standby::Verification;
use super::{Direction, Environment, Owner, Shoot};
use crate::config::DependentId;
use crate::moment::Moment;
use crate::plan::{ByDirection, Deadline};
use crate::scaling::Scaling;
use crate::span;

/// A step of a scale-down rests on a probe that was answered within this time; one of a restore, in
/// which a leader probes every 5 s, within twice the time.
const RECENT: TimeDelta = TimeDelta::seconds(5);
/// The longest wait of a standby for a probe that was sent since its turn: a slow API server must
/// not cost the last seconds before nodes are marked Unknown.
const AWAITS_PROBE: TimeDelta = TimeDelta::seconds(2);

/// A condition on a write. Most are met *since* a moment, and then want a probe that was sent since.
///
/// ```text
///                     leader: down  up   standby: down  up   of a shoot that belongs elsewhere
///  Owned, Ours, NotPaused      x     x             x     x    now
///  SeedCurrent, InitialDelay   x     x             x     x    x
///  SameTerms                   x*    x             x*    x    x
///  Confirmed                   now   now           now   now
///  Stabilized                        x                   x
///  LeaderHadItsTurn                                x+    x
///  Recent                      x*    x             x     x
///  Unchanged                   x     x             x     x    x
///  NodesSeen                         x                   x
///  NotRepeated                 x     x             x     x    x, for what begins a scaling
///  SeedVerified                                    now
///  now  it must be met, since when does not matter
///  *    but a scale-down that is under way waits no longer than to its ordering deadline
///  +    but a step waits for a probe since then for two seconds at most
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Requirement {
    /// The owner record names this seed.
    Owned,
    /// The Cluster is on this seed and wants probes.
    Ours,
    /// No operator has paused the shoot.
    NotPaused,
    /// The view of the seed is up to date.
    SeedCurrent,
    /// The shoot has been eligible for initialDelay.
    InitialDelay,
    /// The last probe does not contradict: for a restore it was complete and says "up"; for a
    /// scale-down it is no hold for mere want of proof.
    Confirmed,
    /// The verdict has been "up" for the configured time.
    Stabilized,
    /// Leadership, config and settings have not changed.
    SameTerms,
    /// The leader had its time for this step, and did not take it.
    LeaderHadItsTurn,
    /// A probe was answered within the last seconds.
    Recent,
    /// The dependent has not changed.
    Unchanged,
    /// A probe was sent since the last scaling ended, and after a pause if that failed.
    NotRepeated,
    /// A probe was answered since the level was opened.
    NodesSeen,
    /// The seed's API server itself says that a standby may protect.
    SeedVerified,
}

#[cfg(test)]
thread_local! {
    /// A requirement that no write needs to meet.
    pub(crate) static SWITCHED_OFF: std::cell::Cell<Option<Requirement>> =
        const { std::cell::Cell::new(None) };
}

/// A write that may be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub id: DependentId,
    pub direction: Direction,
    /// `None` for a write that would begin a scaling.
    pub scaling: Option<Scaling>,
}

impl Candidate {
    /// A write that would begin a scaling.
    pub(super) fn to_begin(id: DependentId, direction: Direction) -> Self {
        Self {
            id,
            direction,
            scaling: None,
        }
    }
}

/// State of a requirement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Standing {
    Met,
    /// Met by a probe that was sent at this moment or later.
    Sent(Moment),
    /// Met by a probe that was sent later.
    After(Moment),
    /// Met by a probe that was answered at this moment or later.
    Answered(Moment),
    /// Not met before this moment.
    From(Moment),
    /// Not met until the seed was read.
    Unread,
    /// Not met until an input changes it.
    Blocked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Write, by a probe that was sent at this moment.
    Write(Moment),
    /// Probe: the last one is older than this moment. From the deadline on it will do.
    Probe(Requirement, Moment, Deadline),
    /// Wait until this moment.
    Wait(Moment, Requirement),
    Blocked(Requirement),
}

/// A requirement that is not met, in the order of how long it takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unmet {
    UntilRead,
    UntilProbed,
    Until(Moment),
    UntilChanged,
}

impl Standing {
    fn unmet(self, basis: Basis, now: Moment) -> Option<Unmet> {
        let by = |probe: Moment, since: Moment| {
            if since > now {
                Some(Unmet::Until(since))
            } else {
                (probe < since).then_some(Unmet::UntilProbed)
            }
        };
        match self {
            Self::Met => None,
            Self::Sent(since) => by(basis.sent, since),
            Self::After(moment) => (basis.sent <= moment).then_some(Unmet::UntilProbed),
            Self::Answered(since) => by(basis.completed, since),
            Self::From(moment) => (moment > now).then_some(Unmet::Until(moment)),
            Self::Unread => Some(Unmet::UntilRead),
            Self::Blocked => Some(Unmet::UntilChanged),
        }
    }

    fn since(self) -> Option<Moment> {
        match self {
            Self::Sent(since) | Self::After(since) | Self::Answered(since) => Some(since),
            _ => None,
        }
    }
}

impl Requirement {
    /// True if a write must meet it.
    fn applies(self, shoot: &Shoot, write: Candidate, leads: bool) -> bool {
        #[cfg(test)]
        if SWITCHED_OFF.get() == Some(self) {
            return false;
        }
        let passivates = shoot.phase.has_stood_down();
        let is_step = write.scaling.is_some();
        let is_up = write.direction == Direction::Up;
        match self {
            Self::Owned | Self::Ours | Self::NotPaused => true,
            Self::SeedCurrent | Self::InitialDelay | Self::SameTerms | Self::Unchanged => true,
            Self::Confirmed => !passivates,
            Self::Stabilized => is_up,
            Self::LeaderHadItsTurn => !leads,
            Self::Recent => is_step && !passivates,
            Self::NotRepeated => !is_step,
            Self::NodesSeen => is_step && is_up,
            Self::SeedVerified => is_step && !is_up && !leads,
        }
    }

    fn standing(
        self,
        shoot: &Shoot,
        write: Candidate,
        env: &Environment<'_>,
        now: Moment,
    ) -> Standing {
        let Candidate { id, direction, .. } = write;
        let facts = &shoot.watch.facts;
        let sent = |since: Option<Moment>| since.map_or(Standing::Blocked, Standing::Sent);
        let after = |moment: Option<Moment>| moment.map_or(Standing::Met, Standing::After);
        let free = |is_met: bool| match facts.free[direction] {
            _ if !is_met => Standing::Blocked,
            Some(since) if !shoot.phase.has_stood_down() => Standing::Sent(since),
            _ => Standing::Met,
        };
        match self {
            Self::Owned => free(Shoot::is_owned(direction, env)),
            Self::Ours => free(env.is_ours),
            Self::NotPaused => free(shoot.is_unpaused(direction, env)),
            Self::SeedCurrent => sent(env.seed_since[direction]),
            Self::InitialDelay => Standing::Sent(shoot.delayed_until(direction)),
            Self::Confirmed if shoot.is_contradicted(direction) => Standing::Blocked,
            Self::Confirmed => Standing::Met,
            Self::Stabilized => sent(
                facts
                    .up
                    .map(|up| up + span(env.options.scale_up_stabilization.value)),
            ),
            Self::SameTerms => Standing::Sent(facts.same_terms),
            Self::LeaderHadItsTurn => shoot.leaders_turn(write, env),
            Self::Recent if direction == Direction::Up => Standing::Answered(now - RECENT * 2),
            Self::Recent => Standing::Answered(now - RECENT),
            Self::Unchanged => after(shoot.dependents[id].since()),
            Self::NotRepeated => match shoot.ended {
                Some(ended) if ended.next() > now => Standing::From(ended.next()),
                ended => after(ended.map(|ended| ended.at)),
            },
            Self::NodesSeen => Standing::Answered(shoot.dependents[id].step.began),
            Self::SeedVerified => match shoot.watch.verification {
                Verification::Confirmed => Standing::Met,
                Verification::Refused(again) if again > now => Standing::From(again),
                _ => Standing::Unread,
            },
        }
    }

    /// Returns from when on any probe will do.
    fn lapses(self, shoot: &Shoot, write: Candidate, env: &Environment<'_>) -> Deadline {
        let Some(scaling) = write.scaling.filter(|_| write.direction == Direction::Down) else {
            return Deadline::Never;
        };
        match self {
            Self::SameTerms => scaling.deadline,
            Self::Recent if env.leads && shoot.probes.failures() > 0 => Deadline::Passed,
            Self::Recent if env.leads => scaling.deadline,
            Self::LeaderHadItsTurn => match shoot.leaders_turn(write, env) {
                Standing::Sent(from) => Deadline::At(from + AWAITS_PROBE),
                _ => Deadline::Never,
            },
            _ => Deadline::Never,
        }
    }
}

impl Shoot {
    /// Decides on a write: the requirement that takes longest to be met comes first.
    pub(super) fn decide(&self, write: Candidate, env: &Environment<'_>, now: Moment) -> Decision {
        let Some(basis) = self.basis(env) else {
            return Decision::Blocked(Requirement::Confirmed);
        };
        let row = |&row: &Requirement| {
            let standing = row.standing(self, write, env, now);
            let unmet = standing.unmet(basis, now)?;
            let lapses = row.lapses(self, write, env);
            (!lapses.has_passed(now)).then_some((unmet, row, standing, lapses))
        };
        let unmet = Requirement::VARIANTS
            .iter()
            .filter(|row| row.applies(self, write, env.leads))
            .filter_map(row);
        // Of those that take equally long the first is told.
        match unmet.rev().max_by_key(|(unmet, ..)| *unmet) {
            None => Decision::Write(basis.sent),
            Some((Unmet::UntilProbed, requirement, standing, lapses)) => {
                Decision::Probe(requirement, standing.since().unwrap_or(now), lapses)
            }
            Some((Unmet::Until(moment), requirement, ..)) => Decision::Wait(moment, requirement),
            Some((Unmet::UntilRead | Unmet::UntilChanged, requirement, ..)) => {
                Decision::Blocked(requirement)
            }
        }
    }

    /// Returns since when all that does not depend on a dependent has let scale-downs begin, as far
    /// as it is met.
    pub(super) fn terms_since(&self, env: &Environment<'_>, now: Moment) -> Moment {
        let write = Candidate::to_begin(DependentId(0), Direction::Down);
        let is_term = |row: &&Requirement| {
            !matches!(row, Requirement::Unchanged | Requirement::NotRepeated)
                && row.applies(self, write, env.leads)
        };
        Requirement::VARIANTS
            .iter()
            .filter(is_term)
            .filter_map(|row| row.standing(self, write, env, now).since())
            .filter(|&since| since <= now)
            .fold(Moment::START, Moment::max)
    }

    /// True if the last probe says what a dry run would write: from the end of initialDelay on, and
    /// once it is stable.
    pub(super) fn may_be_intended(
        &self,
        direction: Direction,
        env: &Environment<'_>,
        now: Moment,
    ) -> bool {
        let write = Candidate::to_begin(DependentId(0), direction);
        let rows = [Requirement::InitialDelay, Requirement::Stabilized];
        self.basis(env).is_some_and(|basis| {
            rows.into_iter().all(|row| {
                !row.applies(self, write, env.leads)
                    || row
                        .standing(self, write, env, now)
                        .unmet(basis, now)
                        .is_none()
            })
        })
    }

    /// True if nothing but its turn keeps this replica from writing.
    pub(super) fn is_free(&self, env: &Environment<'_>) -> ByDirection<bool> {
        let is_free = |direction| {
            env.is_ours && Self::is_owned(direction, env) && self.is_unpaused(direction, env)
        };
        ByDirection {
            up: is_free(Direction::Up),
            down: is_free(Direction::Down),
        }
    }

    /// True if the owner record allows a write.
    pub(super) fn is_owned(direction: Direction, env: &Environment<'_>) -> bool {
        let protects = direction == Direction::Down && env.leads;
        match env.owner {
            Owner::Here => true,
            Owner::Unknown => false,
            // As where a pause is not known.
            Owner::LeaderOnly => protects,
            Owner::Elsewhere { passivates_since } => protects && passivates_since.is_some(),
        }
    }

    /// True if no operator has paused the shoot. While that is unknown the leader protects; but a
    /// pause that was read holds until it is read as lifted.
    fn is_unpaused(&self, direction: Direction, env: &Environment<'_>) -> bool {
        let protects = env.leads && direction == Direction::Down && !self.was_paused;
        env.paused.map_or(protects, |paused| !paused)
    }

    /// Returns from when on probes lead to writes: at once for the protection of a shoot in
    /// operation and for a restore that goes on there.
    pub(super) fn delayed_until(&self, direction: Direction) -> Moment {
        let at_once = match direction {
            Direction::Down => self.watch.start.in_operation,
            Direction::Up => self.continues_restore(),
        };
        if at_once {
            self.watch.start.eligible
        } else {
            self.initial_delay_ends()
        }
    }

    pub(super) fn initial_delay_ends(&self) -> Moment {
        self.watch.start.eligible + span(self.config.initial_delay)
    }

    /// True if a restore was begun before this process: what is held down has an earlier level, and
    /// all of that is up and ready. A scale-down that has only just begun looks the same, so this
    /// replaces no proof: some nodes must count.
    fn continues_restore(&self) -> bool {
        let known = || self.config.dependents.iter().zip(self.dependents.iter());
        let Some(first) = known()
            .filter(|(_, known)| known.is_held_down())
            .map(|(dependent, _)| dependent.scale_up.level)
            .min()
        else {
            return false;
        };
        let earlier = || known().filter(|(dependent, _)| dependent.scale_up.level < first);
        let counts = self
            .finding()
            .is_some_and(|finding| finding.tally.candidates > 0);
        self.watch.start.in_operation
            && counts
            && earlier().next().is_some()
            && earlier().all(|(_, known)| known.is_restored())
    }

    fn is_contradicted(&self, direction: Direction) -> bool {
        match direction {
            Direction::Up => !self.verdict().is_some_and(|verdict| verdict.is_up()),
            Direction::Down => self
                .finding()
                .is_some_and(|finding| finding.holds_for_proof),
        }
    }
}
