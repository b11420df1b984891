//! Since when a write is allowed, and on which probe it may rest: one that was sent since the write
//! has been allowed without interruption (D-56), and since what it changes is as it is (D-52).

use chrono::TimeDelta;

use super::{Context, Direction, Environment, Shoot};
use crate::config::DependentId;
use crate::moment::Moment;
use crate::plan::ByDirection;
use crate::scaling::Scaling;
use crate::span;
use crate::step::Stage;
use crate::verdict::Verdict;

/// How long to wait, from when this process first saw that a shoot may be probed, to learn whether
/// it is paused (decisions, "Settings without a config file").
const PAUSE_READ: TimeDelta = TimeDelta::seconds(2);
/// A level of a scale-down waits for another answer if the last probe is older, for so long at most
/// (D-57).
const RECENT: TimeDelta = TimeDelta::seconds(2);

#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Permission {
    /// Since when nothing but its turn has kept this replica from writing, without interruption:
    /// the shoot is ours, not paused, and its owner record allows it (D-56).
    pub since: ByDirection<Option<Moment>>,
    /// Since when leadership, config and settings are the same.
    pub unchanged_since: Moment,
    pub led: bool,
    /// Whether it was paused when that was known last.
    pub was_paused: bool,
}

impl Shoot {
    /// Notes since when writes are allowed; config or settings may have `changed`.
    pub(super) fn update_permission(&mut self, changed: bool, cx: &mut Context<'_>) {
        let env = cx.env;
        let gained_or_lost_lead =
            std::mem::replace(&mut self.permission.led, env.leads) != env.leads;
        if gained_or_lost_lead || changed {
            self.permission.unchanged_since = cx.now;
            // A scaling that this replica only followed begins again, on a probe since.
            let is_followed = self
                .scaling
                .current
                .is_some_and(|scaling| !scaling.reported);
            let mut steps = self.dependents.iter().map(|known| &known.step.stage);
            if is_followed && !steps.any(Stage::is_under_way) {
                self.abandon(cx);
            }
        }
        if gained_or_lost_lead && self.verdict().is_some() {
            // Who leads probes sooner (D-53); a first probe, and one after a failure, keeps its
            // time.
            self.probing.no_later_than(self.scheduled(None, cx));
        }
        let mut since = |direction| {
            let allowed = env.is_ours
                && self.is_not_paused(direction, cx)
                && self.owner_allows(direction, env);
            allowed.then(|| self.permission.since[direction].unwrap_or(cx.now))
        };
        self.permission.since = ByDirection {
            up: since(Direction::Up),
            down: since(Direction::Down),
        };
    }

    /// While it is unknown whether the shoot is paused nothing is written for a moment; then the
    /// leader protects. A pause that was once read holds until it is read otherwise.
    fn is_not_paused(&self, direction: Direction, cx: &mut Context<'_>) -> bool {
        match cx.env.paused {
            Some(paused) => !paused,
            None => {
                let from = self.start.eligible + PAUSE_READ;
                cx.wake_at(from);
                from <= cx.now
                    && cx.env.leads
                    && direction == Direction::Down
                    && !self.permission.was_paused
            }
        }
    }

    /// When the probe was sent that a write in this direction may rest on; if that is too long ago,
    /// a later probe is requested. A restore also wants the last probe to be complete (D-23).
    pub(super) fn evidence(
        &mut self,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Option<Moment> {
        self.evidence_since(self.permission.unchanged_since, direction, cx)
    }

    fn evidence_since(
        &mut self,
        unchanged_since: Moment,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Option<Moment> {
        let judged_at = self.judged_at(cx.env)?;
        if direction == Direction::Up && !self.verdict().is_some_and(Verdict::is_up) {
            return None;
        }
        let since = self.allowed_since(direction, cx)?.max(unchanged_since);
        cx.wake_at(since);
        if judged_at < since && since <= cx.now {
            self.probing.soon(since, cx.now);
        }
        (judged_at >= since).then_some(judged_at)
    }

    /// Since when, or from when on, a probe may lead to a write in this direction, another
    /// leadership, config or settings apart; none while that is not known (D-56).
    fn allowed_since(&mut self, direction: Direction, cx: &mut Context<'_>) -> Option<Moment> {
        if !self.is_owner(direction, cx) {
            return None;
        }
        let allowed = match self.permission.since[direction]? {
            // A check of the owner record comes before what follows from it.
            _ if self.owner.stood_down => Moment::START,
            since if cx.env.leads => since,
            since => since.max(self.standbys_turn(direction, cx.env)?),
        };
        Some(
            allowed
                .max(cx.env.seed_since[direction]?)
                .max(self.writes_from(direction, cx.env)?),
        )
    }

    /// From when on probes lead to writes: from the end of initialDelay on; protection of a shoot
    /// in operation, and a restore that goes on there, at once (D-51); for a restore once "up" was
    /// said for as long as is configured (D-22).
    pub(super) fn writes_from(
        &self,
        direction: Direction,
        env: &Environment<'_>,
    ) -> Option<Moment> {
        let at_once = match direction {
            Direction::Down => self.start.in_operation,
            Direction::Up => self.continues_restore(),
        };
        let from = if at_once {
            self.start.eligible
        } else {
            self.initial_delay_ends()
        };
        match direction {
            Direction::Down => Some(from),
            Direction::Up => Some(
                from.max(self.verdicts.up?.at + span(env.options.scale_up_stabilization.value)),
            ),
        }
    }

    pub(super) fn initial_delay_ends(&self) -> Moment {
        self.start.eligible + span(self.config.initial_delay)
    }

    /// Whether a restore was begun before this process: what is held down has an earlier level, and
    /// all of that is up and ready (D-51). A scale-down that only just began looks the same, so
    /// this replaces no proof (D-59): some nodes must count.
    pub(super) fn continues_restore(&self) -> bool {
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
        self.start.in_operation
            && !self.owner.returned
            && counts
            && earlier().next().is_some()
            && earlier().all(|(_, known)| known.is_restored())
    }

    /// When the probe was sent that a step of a scaling may rest on. A scale-down that has begun
    /// does not wait for long for a probe since another leadership, config or settings: nodes that
    /// are marked Unknown do not come back (D-57).
    pub(super) fn evidence_for(
        &mut self,
        scaling: Scaling,
        id: DependentId,
        cx: &mut Context<'_>,
    ) -> Option<Moment> {
        let mut unchanged_since = self.permission.unchanged_since;
        if scaling.direction == Direction::Down {
            if self.only_lacks_proof() {
                // Whoever leads has its time again after the hold.
                self.dependents[id].step.began = cx.now;
                return None;
            }
            let lapses_at = waits_until(scaling, unchanged_since, cx);
            cx.wake_at(lapses_at);
            if lapses_at <= cx.now {
                unchanged_since = Moment::START;
            }
        }
        let judged_at = self.evidence_since(unchanged_since, scaling.direction, cx)?;
        let rests = self.has_its_turn(scaling, id, judged_at, cx)
            && self.is_fresh_for(id, judged_at, Some(scaling.id), cx)
            && !self.awaits_answer(scaling, id, judged_at, cx);
        rests.then_some(judged_at)
    }

    /// Whether a probe is newer than a dependent's state; if not, a later one is requested.
    pub(super) fn is_fresh_for(
        &self,
        id: DependentId,
        judged_at: Moment,
        scaling: Option<u64>,
        cx: &mut Context<'_>,
    ) -> bool {
        let is_fresh = self.dependents[id].is_older_than_probe(judged_at, scaling);
        if !is_fresh {
            cx.request_reprobe(Some(id));
        }
        is_fresh
    }

    /// Whether all that keeps the last probe from saying "up" is the proof that a restore wants: a
    /// scale-down takes no further step by that (D-73).
    fn only_lacks_proof(&self) -> bool {
        let holds = self
            .finding()
            .is_some_and(|finding| finding.holds_for_proof);
        holds && !self.owner.stood_down
    }

    /// Whether a step waits for an answer since its turn (D-57): a restore for as long as it takes;
    /// a scale-down only if the last probe is old, and while there is time.
    fn awaits_answer(
        &mut self,
        scaling: Scaling,
        id: DependentId,
        judged_at: Moment,
        cx: &mut Context<'_>,
    ) -> bool {
        let began = self.dependents[id].step.began;
        let until = waits_until(scaling, began, cx);
        let old =
            scaling.direction == Direction::Up || judged_at + RECENT < cx.now && cx.now < until;
        // For a shoot that belongs elsewhere nothing is probed.
        if self.probing.completed >= began || !old || self.owner.stood_down {
            return false;
        }
        self.probing.soon(began, cx.now);
        cx.wake_at(until);
        true
    }
}

/// Until when a scale-down waits for an answer since that moment: never past the ordering deadline.
fn waits_until(scaling: Scaling, since: Moment, cx: &Context<'_>) -> Moment {
    scaling
        .ordering_deadline
        .map_or(cx.now, |deadline| deadline.min(since + RECENT))
}
