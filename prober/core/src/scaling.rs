//! One scaling: the dependents of one direction, level by level (rules 59, 69, D-35).
//!
//! Down: protection beats order. A level opens when the one before it is at 0 ready pods, after 5
//! s, or at the ordering deadline, whichever comes first; nothing that fails stops anything else.
//! Up: strict order. A level opens when all of the one before it is written and ready, or 5 s after
//! the write. What cannot be scaled is waited for until its timeout since its level opened, and
//! tried again with a back-off, for as long as the restore takes and after it.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use super::dependent::{DependentRecord, Dependents};
use super::moment::Moment;
use super::plan::{Deadline, Direction, levels};
use super::retry::Retry;
use super::span;
use super::step::Stage;
use crate::config::{Config, Dependent, DependentId};

/// Longest wait of a level for the pods of the one before it, as in the Go original.
const READY_WAIT: TimeDelta = TimeDelta::seconds(5);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaling {
    pub direction: Direction,
    pub began: Moment,
    pub deadline: Deadline,
    /// Its begin was reported, as its end will be: this replica takes part in it.
    pub reported: bool,
}

impl DependentRecord {
    /// Makes it due. What restores could not scale before is tried once.
    pub(crate) fn begin(&mut self, direction: Direction, dependent: &Dependent, now: Moment) {
        let timeout = direction.info(dependent).timeout;
        self.step.retry = match direction {
            Direction::Up if self.tried_again_at().is_some() => Retry::once(direction, timeout),
            _ => Retry::new(direction, timeout),
        };
        self.step.begin(now);
    }

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
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// The level that was opened last.
    open: Vec<DependentId>,
    closed: BTreeMap<i32, Vec<DependentId>>,
    opened: Moment,
    /// Opening of the next level of a scale-down whatever the pods do.
    latest: Moment,
}

impl Levels {
    pub(crate) fn new(direction: Direction, config: &Config, now: Moment) -> Self {
        Self {
            open: Vec::new(),
            closed: levels(&config.dependents, direction),
            opened: now,
            latest: now,
        }
    }

    /// Opens the next level if it is its time. Returns what the restore goes on without.
    pub(crate) fn open_next(
        &mut self,
        scaling: Scaling,
        dependents: &mut Dependents,
        config: &Config,
        now: Moment,
    ) -> Option<Vec<DependentId>> {
        let direction = scaling.direction;
        if !self.is_over(direction, dependents, config, now) {
            return None;
        }
        let (_, next) = self.closed.pop_first()?;
        let mut left = std::mem::take(&mut self.open);
        left.retain(|&id| {
            direction == Direction::Up && dependents[id].step.stage != Stage::Done(None)
        });
        let delay = next
            .iter()
            .filter(|&&id| dependents[id].has_replicas())
            .map(|&id| config.dependent(id).scale_down.initial_delay)
            .max();
        let latest = now + span(delay.unwrap_or_default()) + READY_WAIT;
        self.latest = scaling.deadline.limit(latest, now);
        for &id in &next {
            dependents[id].begin(direction, config.dependent(id), now);
        }
        (self.open, self.opened) = (next, now);
        Some(left)
    }

    /// True if the next level need not wait for the open one any more.
    fn is_over(
        &self,
        direction: Direction,
        dependents: &Dependents,
        config: &Config,
        now: Moment,
    ) -> bool {
        let mut open = self.open.iter().map(|&id| (id, &dependents[id]));
        match direction {
            Direction::Down => {
                now >= self.latest
                    || open.all(|(_, dependent)| {
                        dependent.step.stage == Stage::Failed || !dependent.is_going_down()
                    })
            }
            Direction::Up => open.all(|(id, dependent)| {
                dependent.step.stage == Stage::Done(None)
                    || dependent.fails()
                        // What waits for a probe or a permit is tried first.
                        && matches!(dependent.step.stage, Stage::Failed | Stage::Writing(..))
                        && now >= self.awaits_until(id, config)
            }),
        }
    }

    /// Returns the end of the wait of later levels of a restore for a dependent that cannot be scaled.
    fn awaits_until(&self, id: DependentId, config: &Config) -> Moment {
        self.opened + span(config.dependent(id).scale_up.timeout)
    }

    /// True if all levels are open and settled.
    pub(crate) fn are_over(&self, dependents: &Dependents) -> bool {
        let mut steps = dependents.iter().map(|dependent| &dependent.step.stage);
        self.closed.is_empty() && steps.all(Stage::is_settled)
    }

    /// The next moment at which something happens by itself, given how the dependents are.
    pub(crate) fn next(
        &self,
        direction: Direction,
        dependents: &Dependents,
        config: &Config,
        now: Moment,
    ) -> Option<Moment> {
        let open = self.open.iter().filter(|_| !self.closed.is_empty());
        let level = open.map(|&id| match direction {
            Direction::Down => self.latest,
            Direction::Up => self.awaits_until(id, config),
        });
        let step = |dependent: &DependentRecord| match dependent.step.stage {
            Stage::Due(from) => Some(from),
            Stage::Done(Some(written)) => Some(written + READY_WAIT),
            Stage::Failed if direction == Direction::Up => dependent.tried_again_at(),
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
