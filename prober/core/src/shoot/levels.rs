//! The order of writes (rules 59, 69, D-35): which levels are open.
//!
//! Down: protection beats order. A level opens when the one before it is at 0 ready pods, after 5
//! s, or at the ordering deadline, whichever comes first; nothing that fails stops anything else.
//! Up: strict order. A level opens when all of the one before it is written and ready, or 5 s after
//! the write. What cannot be scaled is waited for until its timeout since its first attempt.

use chrono::TimeDelta;

use super::{Direction, Environment, Goal, Output, Report, Shoot};
use crate::config::DependentId;
use crate::moment::Moment;
use crate::plan::levels;
use crate::refusal::ATTEMPTS;
use crate::span;

/// Longest wait of a level for the pods of the one before it, as in the Go original.
const READY_WAIT: TimeDelta = TimeDelta::seconds(5);

impl Shoot {
    /// Opens each level whose lower ones let it. One that is open stays so; on the way up it is closed
    /// once it has nothing left to do, and waits for the lower ones again if it is taken down later.
    pub(super) fn open_levels(&mut self, goal: Goal, env: &Environment, out: &mut Output) {
        let (mut is_open, mut left) = (true, Vec::new());
        for level in levels(&env.config.dependents, goal.0).into_values() {
            for &id in &level {
                let is_done = matches!(self.plan(id, goal, env), Ok(None));
                let known = &mut self.dependents[id.0];
                if is_done && goal.0 == Direction::Up {
                    known.open = None;
                } else if is_open && known.open.is_none() {
                    (known.open, known.tried, known.left_behind) = (Some(out.now), None, false);
                    self.leave(&mut left, out);
                }
            }
            is_open = is_open
                && match goal.0 {
                    Direction::Down => self.is_out_of_the_way(&level, env, out),
                    Direction::Up => self.is_back(&level, goal, env, &mut left, out),
                };
        }
    }

    /// Says once of each that what comes later does not wait for it any more.
    fn leave(&mut self, left: &mut Vec<(DependentId, Report)>, out: &mut Output) {
        for (id, report) in left.drain(..) {
            if !std::mem::replace(&mut self.dependents[id.0].left_behind, true) {
                out.report(report);
            }
        }
    }

    /// Down: its pods are gone, or it cannot be scaled; after 5 s, or at the deadline, in any case.
    fn is_out_of_the_way(
        &self,
        level: &[DependentId],
        env: &Environment,
        out: &mut Output,
    ) -> bool {
        let opened = level.iter().filter_map(|&id| self.dependents[id.0].open);
        let (Some(opened), Some(course)) = (opened.min(), self.course) else {
            return true;
        };
        // A delay counts of what is to be scaled, and of what was.
        let delayed = level.iter().filter(|&&id| {
            let known = &self.dependents[id.0];
            known.view.has_replicas() || known.view.changed() > known.open
        });
        let delays = delayed.map(|&id| env.config.dependent(id).scale_down.initial_delay);
        let delay = span(delays.max().unwrap_or_default());
        let latest = course.by_deadline(opened, opened + delay + READY_WAIT);
        out.wake_at(latest);
        let is_gone = |&id: &DependentId| {
            let known = &self.dependents[id.0];
            !known.view.is_going_down() || known.failures >= ATTEMPTS
        };
        latest <= out.now || level.iter().all(is_gone)
    }

    /// Time at which a dependent that is not ready yet was restored in this course.
    fn restored(&self, id: DependentId) -> Option<Moment> {
        let view = &self.dependents[id.0].view;
        let since = self.course.map(|course| course.since);
        let changed = view.changed().filter(|_| view.is_starting());
        changed.filter(|&changed| Some(changed) >= since)
    }

    /// Up: each is ready, or was written 5 s ago; or it fails for as long as its timeout. What is to
    /// be said of those that are late once the next level opens is added to `left`.
    fn is_back(
        &self,
        level: &[DependentId],
        goal: Goal,
        env: &Environment,
        left: &mut Vec<(DependentId, Report)>,
        out: &mut Output,
    ) -> bool {
        let mut is_back = true;
        for &id in level {
            let known = &self.dependents[id.0];
            let (end, report) = match self.plan(id, goal, env) {
                // Whoever restored it: the view may show a write of ours before its answer.
                Ok(None) => match self.restored(id) {
                    Some(restored) => (Some(restored + READY_WAIT), Report::NotReady(id)),
                    None => continue,
                },
                // A dry run has said so.
                Ok(Some(_)) if known.intended.is_some() => continue,
                Ok(Some(_)) | Err(_) => {
                    let timeout = span(env.config.dependent(id).scale_up.timeout);
                    let tried = known.tried.filter(|_| known.fails());
                    (tried.map(|tried| tried + timeout), Report::LeftBehind(id))
                }
            };
            let end = end.unwrap_or(Moment::NEVER);
            if end <= out.now {
                left.push((id, report));
            } else {
                is_back = false;
                out.wake_at(end);
            }
        }
        is_back
    }
}
