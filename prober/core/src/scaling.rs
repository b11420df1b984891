//! One scaling: the dependents of one direction, level by level (rules 59, 69, D-35).
//!
//! Down: protection beats order. A level opens when the one before it is at 0 ready pods, after 5
//! s, or at the ordering deadline, whichever comes first; nothing that fails stops anything else.
//! Up: strict order. A level opens when all of the one before it is written and ready, or 5 s after
//! the write; what cannot be written holds back the later levels.

use chrono::TimeDelta;

use super::known::Known;
use super::moment::Moment;
use super::plan::{Direction, levels};
use super::replicas::Change;
use super::retry::Retry;
use super::span;
use crate::config::Dependent;

/// How long a level waits at most for the pods of the one before it (rule 69).
const READY_WAIT: TimeDelta = TimeDelta::seconds(5);

#[derive(Clone, Debug, Hash)]
pub(crate) struct Scaling {
    pub id: u64,
    pub direction: Direction,
    pub steps: Vec<Step>,
    /// By ascending level, the places of the dependents.
    levels: Vec<Vec<usize>>,
    open: usize,
    /// When the next level of a scale-down opens whatever the pods do.
    latest: Moment,
    /// None: no level waits for another.
    pub ordering_deadline: Option<Moment>,
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Step {
    pub stage: Stage,
    pub retry: Retry,
    pub began: Moment,
    /// Whether its initial delay was waited (D-18).
    pub delayed: bool,
    pub written: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Closed,
    /// It is to be decided on, from this moment on.
    Due(Moment),
    AwaitingPermit,
    /// It is being read from the API server, since what was known of it was out of date.
    Reading,
    /// This is under way since that moment.
    Writing(Change, Moment),
    /// It is where it should be; since when, if its replicas were written and it is not known to be
    /// ready yet.
    Done(Option<Moment>),
    Failed,
}

impl Scaling {
    pub(crate) fn new(
        id: u64,
        direction: Direction,
        dependents: &[Dependent],
        deadline: Option<Moment>,
        now: Moment,
    ) -> Self {
        let step = |dependent: &Dependent| Step {
            stage: Stage::Closed,
            retry: Retry::new(direction, direction.info(dependent).timeout),
            began: now,
            delayed: false,
            written: false,
        };
        Self {
            id,
            direction,
            steps: dependents.iter().map(step).collect(),
            levels: levels(dependents, direction),
            open: 0,
            latest: now,
            ordering_deadline: deadline,
        }
    }

    /// Opens the next level if it is its time.
    pub(crate) fn opens_level(
        &mut self,
        dependents: &[Dependent],
        known: &[Known],
        now: Moment,
    ) -> bool {
        let Some(next) = self.levels.get(self.open) else {
            return false;
        };
        if !self.previous_is_over(known, now) {
            return false;
        }
        let delay = next
            .iter()
            .filter(|&&at| known[at].has_replicas())
            .map(|&at| dependents[at].scale_down.initial_delay)
            .max();
        let latest = now + span(delay.unwrap_or_default()) + READY_WAIT;
        self.latest = self
            .ordering_deadline
            .map_or(now, |deadline| latest.min(deadline));
        for &at in next {
            (self.steps[at].stage, self.steps[at].began) = (Stage::Due(now), now);
        }
        self.open += 1;
        true
    }

    fn previous_is_over(&self, known: &[Known], now: Moment) -> bool {
        let Some(previous) = self.open.checked_sub(1).and_then(|at| self.levels.get(at)) else {
            return true;
        };
        match self.direction {
            Direction::Down => {
                let gone = |&at: &usize| {
                    self.steps[at].stage == Stage::Failed || !known[at].is_going_down()
                };
                now >= self.latest || previous.iter().all(gone)
            }
            Direction::Up => previous
                .iter()
                .all(|&at| matches!(self.steps[at].stage, Stage::Done(None))),
        }
    }

    /// The places of the dependents whose turn it is, or was.
    pub(crate) fn opened(&self) -> Vec<usize> {
        self.levels[..self.open].concat()
    }

    /// Whether nothing more will happen: all is settled, or what failed holds back the later
    /// levels.
    pub(crate) fn is_over(&self) -> bool {
        let held_back = self.direction == Direction::Up && self.failed() > 0;
        let is_settled =
            |at: usize| matches!(self.steps[at].stage, Stage::Done(None) | Stage::Failed);
        (self.open == self.levels.len() || held_back) && self.opened().into_iter().all(is_settled)
    }

    pub(crate) fn failed(&self) -> usize {
        self.steps
            .iter()
            .filter(|step| step.stage == Stage::Failed)
            .count()
    }

    /// The next moment at which something happens by itself, given how the dependents are.
    pub(crate) fn next(&self, now: Moment) -> Option<Moment> {
        let level = (self.direction == Direction::Down && self.open < self.levels.len())
            .then_some(self.latest);
        let step = |step: &Step| match step.stage {
            Stage::Due(from) => Some(from),
            Stage::Done(Some(written)) => Some(written + READY_WAIT),
            _ => None,
        };
        self.steps
            .iter()
            .map(step)
            .chain([level])
            .flatten()
            .filter(|&moment| moment > now)
            .min()
    }

    /// Ends the wait for what was restored, if it is ready or has had its time; the latter is said.
    pub(crate) fn ends_wait(&mut self, at: usize, known: &Known, now: Moment) -> bool {
        let Stage::Done(Some(written)) = self.steps[at].stage else {
            return false;
        };
        let late = now >= written + READY_WAIT;
        if known.is_ready() || late {
            self.steps[at].stage = Stage::Done(None);
        }
        late && !known.is_ready()
    }
}
