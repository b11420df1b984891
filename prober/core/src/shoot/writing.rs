//! Writes, and what follows from their answers.

use std::sync::Arc;

use chrono::TimeDelta;

use super::{Action, Direction, Environment, Goal, Order, Output, Reason, Report, Shoot, Waits};
use crate::config::DependentId;
use crate::dependent::{Sent, UNDONE_OFTEN};
use crate::moment::Moment;
use crate::object_view::ObjectView;
use crate::refusal::{ATTEMPTS, Refusal};
use crate::replicas::{DependentState, Observed, PlannedWrite, Write, scale_down, scale_up};

/// Time since the verdict in which haste matters: within it kube-controller-manager marks the first
/// node.
pub(super) const URGENT: TimeDelta = TimeDelta::seconds(10);

impl Shoot {
    pub(super) fn act(&mut self, env: &Environment, out: &mut Output) {
        let direction = self.course.map(|course| course.direction);
        for (at, known) in self.dependents.iter_mut().enumerate() {
            known.waits = None;
            known.was_left_alone |= known.view.is_left_alone();
            if let Some(sent) = &mut known.sent
                && sent.is_under_way
                && (self.terms.forbidden[sent.direction].is_some()
                    || direction != Some(sent.direction))
            {
                sent.is_under_way = false;
                out.actions.push(Action::Cancel(DependentId(at)));
            }
        }
        let Some(goal) = self.goal() else { return };
        self.open_levels(goal, env, out);
        for id in (0..self.dependents.len()).map(DependentId) {
            self.step(id, goal, env, out);
        }
    }

    /// Plans the write that brings a dependent to the goal, from its state alone; `None` if there is
    /// nothing to write. Fails if the state is unknown or a mandatory resource is missing. A standby
    /// repairs nothing: it scales down what is above 0 and restores what carries the marker.
    pub(super) fn plan(
        &self,
        id: DependentId,
        (direction, scope): Goal,
        env: &Environment,
    ) -> Result<Option<PlannedWrite>, Refusal> {
        let known = &self.dependents[id.0];
        let base = match known.state() {
            DependentState::Unknown => return Err(Refusal::SeedUnknown),
            DependentState::Unscalable(why) => return Err(Refusal::Unscalable(*why)),
            DependentState::Absent if env.config.dependent(id).optional => return Ok(None),
            DependentState::Absent => return Err(Refusal::NotFound),
            DependentState::Present(observed) => observed,
        };
        let holds = self
            .finding()
            .is_some_and(|finding| finding.verdict.aim().is_none());
        let write = match direction {
            // A hold lets a scale-down end, and undoes nothing that others do.
            Direction::Down if holds && known.was_left_alone => None,
            Direction::Down => scale_down(base, known.view.was_held_down()),
            Direction::Up => scale_up(base, scope, env.options.restore_only_held_down.value),
        };
        let is_standbys = |write: &Write| {
            write.replicas.is_some() && (direction == Direction::Down || base.marks.held_down)
        };
        let write = write.filter(|write| env.goes_first() || is_standbys(write));
        Ok(write.map(|write| PlannedWrite {
            base: Arc::clone(base),
            write,
        }))
    }

    fn step(&mut self, id: DependentId, goal: Goal, env: &Environment, out: &mut Output) {
        let direction = goal.0;
        let plan = self.plan(id, goal, env).transpose();
        let Some(plan) = plan else {
            let known = &mut self.dependents[id.0];
            (known.failures, known.again_at, known.intended) = (0, Moment::START, None);
            return;
        };
        let under_way = self.dependents[id.0].under_way();
        if under_way.is_some_and(|sent| sent.direction == direction) {
            out.is_unfinished = true;
            return;
        }
        let decision = self.decide(id, plan.is_ok(), direction, env, out.now);
        out.is_unfinished |= plan.is_ok() && decision.map_or_else(Waits::is_soon, |_| !env.dry_run);
        match (decision, plan) {
            (Err(waits), _) => self.wait(id, direction, waits, out),
            (Ok(_), Err(refusal)) => self.failed(id, direction, refusal, out),
            (Ok(_), Ok(change)) if env.dry_run => self.intend(id, direction, change, out),
            (Ok(_), Ok(_)) if out.permit != Some(direction) => {
                self.wait(id, direction, Waits::new(Reason::Permit), out);
            }
            (Ok(due), Ok(change)) => self.send(id, direction, due, change, env, out),
        }
    }

    fn send(
        &mut self,
        id: DependentId,
        direction: Direction,
        due: Moment,
        change: PlannedWrite,
        env: &Environment,
        out: &mut Output,
    ) {
        let judged_at = self.finding().map_or(out.now, |finding| finding.judged_at);
        let known = &mut self.dependents[id.0];
        known.tried.get_or_insert(out.now);
        out.permit = None;
        out.is_unfinished = true;
        out.actions.push(Action::Write(Order {
            dependent: id,
            direction,
            change: change.clone(),
            judged_at,
            limit: known.timeout(direction, env.config.dependent(id)),
            needs_lead: env.leads,
        }));
        known.sent = Some(Sent {
            change,
            direction,
            due,
            is_under_way: true,
        });
    }

    fn wait(&mut self, id: DependentId, direction: Direction, waits: Waits, out: &mut Output) {
        let known = &mut self.dependents[id.0];
        known.waits = Some(waits);
        out.wake_at(waits.until.unwrap_or(Moment::NEVER));
        if waits.answer.is_some() {
            // That is over soon, or the probe is reported itself.
            out.wanted = out.wanted.max(waits.answer);
            out.is_changed |= waits.reason == Reason::Changed;
        } else if waits.reason == Reason::Permit {
            let ask = Action::AwaitPermit(direction);
            if !out.actions.contains(&ask) {
                out.actions.push(ask);
            }
        } else if known.said.replace(waits.reason) != Some(waits.reason) {
            out.report(Report::Waits(id, direction, waits));
        }
    }

    /// Says once what would be written, for as long as it stays the same.
    fn intend(
        &mut self,
        id: DependentId,
        direction: Direction,
        change: PlannedWrite,
        out: &mut Output,
    ) {
        let known = &mut self.dependents[id.0];
        let (before, after) = (change.base.replicas, change.replicas());
        let is_known =
            |known: PlannedWrite| (known.base.replicas, known.replicas()) == (before, after);
        if !known.intended.replace(change).is_some_and(is_known) {
            out.report(Report::WouldWrite(id, direction, before, after));
        }
    }

    /// Takes in the answer to a write. One that was cancelled is not awaited.
    pub(super) fn answered(
        &mut self,
        id: DependentId,
        result: Result<Arc<Observed>, Refusal>,
        out: &mut Output,
    ) {
        let known = &mut self.dependents[id.0];
        let Some(sent) = known.sent.take_if(|sent| sent.is_under_way) else {
            return;
        };
        match result {
            Ok(after) => {
                known.view.read(DependentState::Present(after), out.now);
                self.made(id, sent, out);
            }
            // It went away in the meantime; what follows under its name is another resource.
            Err(Refusal::NotFound) => known.view.is_gone(Some(sent.change.base), out.now),
            Err(Refusal::Conflict(state)) => {
                self.failed(id, sent.direction, Refusal::Conflict(state.clone()), out);
                if state != DependentState::Unknown {
                    let marked = self.dependents[id.0].show(ObjectView::read, state, out.now);
                    self.seen(id, marked, out);
                }
            }
            Err(refusal) => {
                let direction = sent.direction;
                if refusal.may_have_been_made() {
                    known.sent = Some(Sent {
                        is_under_way: false,
                        ..sent
                    });
                }
                self.failed(id, direction, refusal, out);
            }
        }
    }

    /// A write was made, whether or not it was answered.
    pub(super) fn made(&mut self, id: DependentId, sent: Sent, out: &mut Output) {
        let known = &mut self.dependents[id.0];
        known.failures = 0;
        // The verdict may have turned meanwhile.
        if self
            .course
            .is_some_and(|course| course.direction == sent.direction)
        {
            known.made(out.now);
            if known.repeats == UNDONE_OFTEN {
                out.report(Report::KeepsChanging(id));
            }
        }
        if sent.change.write.marks.held_down {
            self.marked_after = self.completed();
        }
        out.report(Report::Written {
            dependent: id,
            direction: sent.direction,
            since_due: out.now - sent.due,
            without_lead: !self.terms.goes_first,
            change: sent.change,
        });
    }

    /// Notes a failed attempt. The leader says so, as long as it acts; and on the way down, where it is
    /// tried again soon, more and more rarely.
    fn failed(
        &mut self,
        id: DependentId,
        direction: Direction,
        refusal: Refusal,
        out: &mut Output,
    ) {
        let is_urgent = self
            .course
            .is_some_and(|course| out.now < course.since + URGENT);
        let takes_part = self.terms.goes_first || self.stands_in();
        let known = &mut self.dependents[id.0];
        known.tried.get_or_insert(out.now);
        known.failed(direction, &refusal, is_urgent, out.now);
        out.wake_at(known.again_at);
        let failures = known.failures;
        let is_told = match direction {
            Direction::Up => failures >= ATTEMPTS,
            Direction::Down => {
                failures.is_multiple_of(ATTEMPTS) && (failures / ATTEMPTS).is_power_of_two()
            }
        };
        if is_told && takes_part {
            out.report(Report::NotScaled(id, direction, refusal));
        }
    }
}
