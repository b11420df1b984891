//! One scaling: the dependents of one direction, level by level (rules 59, 69, D-35).
//!
//! Down: protection beats order. A level opens when the one before it is at 0 ready pods, after 5
//! s, or at the ordering deadline, whichever comes first; nothing that fails stops anything else.
//! Up: strict order. A level opens when all of the one before it is written and ready, or 5 s after
//! the write; what cannot be written holds back the later levels.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::dependent::{DependentRecord, Dependents};
use super::moment::Moment;
use super::plan::{Direction, levels};
use super::retry::Retry;
use super::span;
use super::step::Stage;
use crate::config::{Config, DependentId};

/// How long a level waits at most for the pods of the one before it (rule 69).
const READY_WAIT: TimeDelta = TimeDelta::seconds(5);

#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Scaling {
    pub id: u64,
    pub direction: Direction,
    /// None: no level waits for another.
    pub ordering_deadline: Option<Moment>,
    /// Whether its begin was reported, as its end will be: this replica takes part in it.
    pub reported: bool,
}

impl DependentRecord {
    /// Ends the wait for what was restored, if it is ready or has had its time. True in the latter
    /// case.
    pub(crate) fn ends_wait(&mut self, now: Moment) -> bool {
        let Stage::Done(Some(written)) = self.step.stage else {
            return false;
        };
        let late = now >= written + READY_WAIT;
        if late || self.is_ready() {
            self.step.stage = Stage::Done(None);
        }
        late && !self.is_ready()
    }
}

/// The levels of a scaling.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Levels {
    /// The level that was opened last.
    open: Vec<DependentId>,
    closed: BTreeMap<i32, Vec<DependentId>>,
    /// When the next level of a scale-down opens whatever the pods do.
    latest: Moment,
}

impl Levels {
    pub(crate) fn new(direction: Direction, config: &Config, now: Moment) -> Self {
        Self {
            open: Vec::new(),
            closed: levels(&config.dependents, direction),
            latest: now,
        }
    }

    /// Opens the next level if it is its time.
    pub(crate) fn open_next(
        &mut self,
        scaling: Scaling,
        dependents: &mut Dependents,
        config: &Config,
        now: Moment,
    ) -> bool {
        if !self.is_over(scaling.direction, dependents, now) {
            return false;
        }
        let Some((_, next)) = self.closed.pop_first() else {
            return false;
        };
        let delay = next
            .iter()
            .filter(|&&id| dependents[id].has_replicas())
            .map(|&id| config.dependent(id).scale_down.initial_delay)
            .max();
        let latest = now + span(delay.unwrap_or_default()) + READY_WAIT;
        self.latest = scaling
            .ordering_deadline
            .map_or(now, |deadline| latest.min(deadline));
        for &id in &next {
            let timeout = scaling.direction.info(config.dependent(id)).timeout;
            let step = &mut dependents[id].step;
            step.retry = Retry::new(scaling.direction, timeout);
            step.begin(now);
        }
        self.open = next;
        true
    }

    /// Whether the next level need not wait for the open one any more.
    fn is_over(&self, direction: Direction, dependents: &Dependents, now: Moment) -> bool {
        let mut open = self.open.iter().map(|&id| &dependents[id]);
        match direction {
            Direction::Down => {
                now >= self.latest
                    || open.all(|dependent| {
                        dependent.step.stage == Stage::Failed || !dependent.is_going_down()
                    })
            }
            Direction::Up => open.all(|dependent| dependent.step.stage == Stage::Done(None)),
        }
    }

    /// Whether nothing more will happen: all is settled, or what failed holds back the later
    /// levels.
    pub(crate) fn are_over(&self, direction: Direction, dependents: &Dependents) -> bool {
        let mut steps = dependents.iter().map(|dependent| &dependent.step.stage);
        let held_back =
            direction == Direction::Up && steps.clone().any(|stage| *stage == Stage::Failed);
        (self.closed.is_empty() || held_back) && steps.all(Stage::is_settled)
    }

    /// The next moment at which something happens by itself, given how the dependents are.
    pub(crate) fn next(
        &self,
        direction: Direction,
        dependents: &Dependents,
        now: Moment,
    ) -> Option<Moment> {
        let level =
            (direction == Direction::Down && !self.closed.is_empty()).then_some(self.latest);
        let step = |dependent: &DependentRecord| match dependent.step.stage {
            Stage::Due(from) => Some(from),
            Stage::Done(Some(written)) => Some(written + READY_WAIT),
            _ => None,
        };
        dependents
            .iter()
            .filter_map(step)
            .chain(level)
            .filter(|&moment| moment > now)
            .min()
    }
}
