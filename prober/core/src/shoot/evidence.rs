//! On which probe a write may rest: one that was sent since the write has been allowed without
//! interruption (D-56), and since what it changes is as it is (D-52).

use chrono::TimeDelta;

use super::{Context, Direction, Environment, PAUSE_READ, Shoot};
use crate::moment::Moment;
use crate::plan::{ByDirection, levels};
use crate::scaling::Scaling;
use crate::span;
use crate::verdict::Verdict;

/// A level of a scale-down waits for another answer if the last probe is older, for so long at most
/// (D-57).
const RECENT: TimeDelta = TimeDelta::seconds(2);

impl Shoot {
    /// Notes since when nothing but its turn keeps this replica from writing: the shoot is ours,
    /// not paused, and its owner record allows it; and since when leadership, config and settings
    /// are the same, which they are not where something `restarts`.
    pub(super) fn note_freedom(&mut self, restarts: bool, cx: &mut Context<'_>) {
        let env = cx.env;
        let turns = std::mem::replace(&mut self.led, env.leads) != env.leads;
        if turns || restarts {
            self.same_since = cx.now;
        }
        if turns && self.verdict().is_some() {
            // Who leads probes sooner (D-53); a first probe, and one after a failure, keeps its
            // time.
            self.next_probe = self.next_probe.min(self.scheduled(None, cx));
        }
        let mut since = |direction| {
            let free = env.is_ours
                && self.is_not_paused(direction, cx)
                && self.owner_allows(direction, env);
            free.then(|| self.free_since[direction].unwrap_or(cx.now))
        };
        self.free_since = ByDirection {
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
                from <= cx.now && cx.env.leads && direction == Direction::Down && !self.was_paused
            }
        }
    }

    /// When the verdict was judged that a write in this direction may rest on; if that is too long
    /// ago, a later probe is requested. A restore also wants the last probe to be complete (D-23).
    pub(super) fn evidence(
        &mut self,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Option<Moment> {
        self.evidence_since(self.same_since, direction, cx)
    }

    fn evidence_since(
        &mut self,
        same_since: Moment,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Option<Moment> {
        let judged_at = self.judged_at(cx.env)?;
        if direction == Direction::Up && !self.verdict().is_some_and(Verdict::is_up) {
            return None;
        }
        let since = self.allowed_since(direction, cx)?.max(same_since);
        cx.wake_at(since);
        if judged_at < since && since <= cx.now {
            self.probe_soon(since, cx);
        }
        (judged_at >= since).then_some(judged_at)
    }

    /// Since when, or from when on, a probe may lead to a write in this direction, another
    /// leadership, config or settings apart; none while that is not known (D-56).
    fn allowed_since(&mut self, direction: Direction, cx: &mut Context<'_>) -> Option<Moment> {
        let env = cx.env;
        if !self.is_owner(direction, cx) {
            return None;
        }
        let free = match self.free_since[direction]? {
            // A check of the owner record comes before what follows from it.
            _ if self.stood_down => Moment::START,
            free if env.leads => free,
            free => free.max(self.standbys_turn(direction, cx)?),
        };
        Some(
            free.max(env.seed_since[direction]?)
                .max(self.ripe_from(direction, env)?),
        )
    }

    /// From when on probes lead to writes: from the end of initialDelay on; protection of a shoot
    /// in operation, and a restore that goes on there, at once (D-51); for a restore once "up" was
    /// said for as long as is configured (D-22).
    pub(super) fn ripe_from(&self, direction: Direction, env: &Environment<'_>) -> Option<Moment> {
        let at_once = match direction {
            Direction::Down => self.start.in_operation,
            Direction::Up => self.continues_restore(env),
        };
        let from = if at_once {
            self.start.eligible
        } else {
            self.delayed_until(env)
        };
        match direction {
            Direction::Down => Some(from),
            Direction::Up => {
                Some(from.max(self.up_since?.0 + span(env.options.scale_up_stabilization.value)))
            }
        }
    }

    pub(super) fn delayed_until(&self, env: &Environment<'_>) -> Moment {
        self.start.eligible + span(env.config.initial_delay)
    }

    /// Whether a restore was begun before this process: what is held down has an earlier level, and
    /// all of that is up and ready (D-51). A scale-down that only just began looks the same, so
    /// this replaces no proof (D-59): some nodes must count.
    pub(super) fn continues_restore(&self, env: &Environment<'_>) -> bool {
        let levels = levels(&env.config.dependents, Direction::Up);
        let first = levels
            .iter()
            .position(|level| level.iter().any(|&at| self.known[at].is_held_down()));
        let earlier = levels[..first.unwrap_or(0)].concat();
        let is_up = |at: &usize| {
            self.known[*at].observed().is_some_and(|observed| {
                observed.ready > 0 && observed.replicas > 0 && !observed.marks.ignored
            })
        };
        let counts = self
            .finding
            .as_ref()
            .is_some_and(|finding| finding.tally.candidates > 0);
        self.start.in_operation
            && !self.returned
            && counts
            && !earlier.is_empty()
            && earlier.iter().all(is_up)
    }

    /// The same for a step of a scaling. A scale-down that has begun does not wait for long for a
    /// probe since another leadership, config or settings: nodes that are marked Unknown do not
    /// come back (D-57).
    pub(super) fn evidence_for(
        &mut self,
        scaling: &Scaling,
        at: usize,
        cx: &mut Context<'_>,
    ) -> Option<Moment> {
        let direction = scaling.direction;
        let mut same_since = self.same_since;
        if direction == Direction::Down {
            let lapses_at = self.waits_until(scaling, same_since, cx);
            cx.wake_at(lapses_at);
            if lapses_at <= cx.now {
                same_since = Moment::START;
            }
        }
        let judged_at = self.evidence_since(same_since, direction, cx)?;
        let rests = self.is_behind(judged_at, at, direction, Some(scaling.id), cx)
            && !self.awaits_answer(scaling, at, judged_at, cx);
        rests.then_some(judged_at)
    }

    /// Until when a scale-down waits for an answer since that moment: never past the ordering
    /// deadline.
    fn waits_until(&self, scaling: &Scaling, since: Moment, cx: &Context<'_>) -> Moment {
        scaling
            .ordering_deadline
            .map_or(cx.now, |deadline| deadline.min(since + RECENT))
    }

    /// Whether a dependent's state, and the leader's time with it, lie behind a probe; if not, a
    /// later one is requested when that may be.
    pub(super) fn is_behind(
        &self,
        judged_at: Moment,
        at: usize,
        direction: Direction,
        scaling: Option<u64>,
        cx: &mut Context<'_>,
    ) -> bool {
        let turn = self.turn_with(at, direction, cx.env);
        let is_behind = self.known[at].is_older_than_probe(judged_at, scaling)
            && turn.is_none_or(|from| from <= judged_at);
        match turn.filter(|&from| from > cx.now) {
            Some(from) => cx.wake_at(from),
            None if !is_behind => cx.request_reprobe(Some(at)),
            None => {}
        }
        is_behind
    }

    /// Whether a step waits for an answer since its turn (D-57): a restore for as long as it takes;
    /// a scale-down only if the last probe is old, and while there is time.
    fn awaits_answer(
        &mut self,
        scaling: &Scaling,
        at: usize,
        judged_at: Moment,
        cx: &mut Context<'_>,
    ) -> bool {
        let began = scaling.steps[at].began;
        let until = self.waits_until(scaling, began, cx);
        let old =
            scaling.direction == Direction::Up || judged_at + RECENT < cx.now && cx.now < until;
        // For a shoot that belongs elsewhere nothing is probed.
        if self.answered_at >= began || !old || self.stood_down {
            return false;
        }
        self.probe_soon(began, cx);
        cx.wake_at(until);
        true
    }
}
