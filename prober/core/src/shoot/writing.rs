//! Acts of the state machine: it follows its goal, and writes what it may.

use std::sync::Arc;

use chrono::TimeDelta;

use super::goal::Goal;
use super::probing::ProbeReason;
use super::requirement::{Candidate, Decision, Requirement};
use super::{
    Action, Context, Direction, Ended, Environment, Intended, Order, Report, Shoot, Waits, Wake,
};
use crate::config::DependentId;
use crate::moment::Moment;
use crate::refusal::Refusal;
use crate::replicas::{DependentState, Observed, PlannedWrite, scale_down, scale_up};
use crate::scaling::{Levels, Scaling};
use crate::span;
use crate::step::{Stage, Step};
use crate::verdict::Scope;

impl Shoot {
    /// Makes what is under way be what is asked for, and probes if that is due.
    pub(super) fn act(&mut self, cx: &mut Context<'_>) {
        let goal = self.goal(cx.env);
        for dependent in self.dependents.iter_mut() {
            dependent.waits = None;
        }
        if self.must_abandon(goal, cx) {
            self.abandon(cx);
        }
        if self.phase.scaling().is_none() {
            self.begin(goal, cx);
        }
        if self.advance(goal, cx) {
            // What has fallen due meanwhile wants a later probe.
            self.begin(goal, cx);
        }
        self.probe_if_due(cx);
    }

    fn must_abandon(&self, goal: Option<Goal>, cx: &Context<'_>) -> bool {
        let Some(scaling) = self.phase.scaling() else {
            return false;
        };
        let turned = match goal {
            Some(goal) => goal.direction != scaling.direction,
            None => self.phase.has_stood_down(),
        };
        // A scaling that this replica only follows begins again on other terms.
        let mut steps = self.dependents.iter().map(|known| &known.step.stage);
        let is_outdated = !scaling.reported
            && scaling.began < self.watch.facts.same_terms
            && !steps.any(Stage::is_under_way);
        turned || is_outdated || cx.env.paused == Some(true) || !cx.env.is_ours
    }

    pub(super) fn abandon(&mut self, cx: &mut Context<'_>) {
        let Some(scaling) = self.phase.scaling() else {
            return;
        };
        for id in self.dependent_ids() {
            if self.dependents[id].step.stage.is_under_way() {
                cx.actions.push(Action::Cancel(id));
            }
        }
        self.end_scaling();
        if scaling.reported {
            cx.report(Report::Abandoned(scaling.direction));
        }
    }

    fn end_scaling(&mut self) {
        self.phase.end();
        for dependent in self.dependents.iter_mut() {
            dependent.step = Step::default();
        }
    }

    /// Begins a scaling if there is something to do, and it may be done.
    fn begin(&mut self, goal: Option<Goal>, cx: &mut Context<'_>) {
        let Some(goal) = goal else {
            return self.intended.clear();
        };
        let direction = goal.direction;
        if cx.env.dry_run {
            return self.report_dry_run(goal, cx);
        }
        let due: Vec<_> = self
            .dependent_ids()
            .filter(|&id| self.is_due(id, goal, cx.env, cx.now))
            .map(|id| {
                let write = Candidate::to_begin(id, direction);
                (id, self.decide(write, cx.env, cx.now))
            })
            .collect();
        if due
            .iter()
            .any(|(_, decision)| matches!(decision, Decision::Write(_)))
        {
            let scaling = Scaling {
                direction,
                began: cx.now,
                deadline: goal.deadline,
                reported: false,
            };
            let levels = Levels::new(direction, &self.config, cx.now);
            return self.phase.begin(scaling, levels);
        }
        for (id, decision) in due {
            self.follow(id, direction, decision, cx);
        }
        self.wake_for_retries(cx);
    }

    fn wake_for_retries(&self, cx: &mut Context<'_>) {
        for id in self.dependent_ids() {
            let tried = self.dependents[id].tried_again_at();
            for again in [tried, self.written_again_at(id)].into_iter().flatten() {
                cx.wake_at(again, Wake::Retry);
            }
        }
    }

    /// Does what a decision asks for that is not to write, and notes what is waited for.
    fn follow(
        &mut self,
        id: DependentId,
        direction: Direction,
        decision: Decision,
        cx: &mut Context<'_>,
    ) {
        let (requirement, until) = match decision {
            Decision::Write(_) => return,
            Decision::Probe(requirement, since, lapses) => {
                let reason = match requirement {
                    Requirement::Unchanged => ProbeReason::Changed,
                    _ => ProbeReason::Requirement(since),
                };
                if self.probes.request(reason, cx.now) {
                    cx.report(Report::KeepsChanging(id));
                }
                (requirement, lapses.moment())
            }
            Decision::Wait(moment, requirement) => (requirement, Some(moment)),
            Decision::Blocked(requirement) => {
                if requirement == Requirement::Owned {
                    self.prevented(direction, cx);
                }
                (requirement, None)
            }
        };
        if let Some(until) = until {
            cx.wake_at(until, Wake::Requirement(requirement));
        }
        if matches!(
            requirement,
            Requirement::LeaderHadItsTurn | Requirement::Recent | Requirement::SeedVerified
        ) && direction == Direction::Down
            && !cx.env.leads
            && self.phase.scaling().is_some()
        {
            self.verify(cx);
        }
        let waits = Waits { requirement, until };
        let dependent = &mut self.dependents[id];
        dependent.waits = Some(waits);
        // A wait for a probe is over soon, or the probe is reported itself.
        let is_probed = matches!(decision, Decision::Probe(..));
        if !is_probed && dependent.step.said.replace(requirement) != Some(requirement) {
            cx.report(Report::Waits(id, direction, waits));
        }
    }

    /// Reports once that the owner record prevents a write.
    fn prevented(&mut self, direction: Direction, cx: &mut Context<'_>) {
        if self.watch.prevented.replace(direction) != Some(direction) {
            cx.report(Report::NotOwner(direction));
        }
    }

    /// True if a dependent would be written. Protection that cannot know that tries, and says so. One
    /// that could not be scaled is tried again with a back-off, unless protection can write it.
    fn is_due(&self, id: DependentId, goal: Goal, env: &Environment<'_>, now: Moment) -> bool {
        let dependent = &self.dependents[id];
        let backs_off = dependent.tried_again_at().is_some_and(|at| at > now);
        match dependent.state() {
            DependentState::Unknown => goal.direction == Direction::Down && env.leads && !backs_off,
            _ if goal.direction == Direction::Up && backs_off => false,
            _ => self
                .intends(id, goal.direction, goal.scope, env, now)
                .is_some(),
        }
    }

    fn intends(
        &self,
        id: DependentId,
        direction: Direction,
        scope: Scope,
        env: &Environment<'_>,
        now: Moment,
    ) -> Option<PlannedWrite> {
        let dependent = &self.dependents[id];
        let base = Arc::clone(dependent.observed()?);
        let write = match direction {
            Direction::Down => scale_down(&base, dependent.was_held_down()),
            Direction::Up => scale_up(&base, scope, env.options.restore_only_held_down.value),
        }?;
        let change = PlannedWrite { base, write };
        let is_ours = env.leads || env.dry_run || self.is_for_standby(id, direction, &change, now);
        is_ours.then_some(change)
    }

    /// In a dry run says what would be written: each write once, for as long as it stays the one
    /// that would be made.
    fn report_dry_run(&mut self, goal: Goal, cx: &mut Context<'_>) {
        let Goal {
            direction, scope, ..
        } = goal;
        if !self.may_be_intended(direction, cx.env, cx.now) {
            return;
        }
        let before = std::mem::take(&mut self.intended);
        if !Self::is_owned(direction, cx.env) {
            return self.prevented(direction, cx);
        }
        if cx.env.paused == Some(true) {
            return;
        }
        for id in self.dependent_ids() {
            let Some(change) = self.intends(id, direction, scope, cx.env, cx.now) else {
                continue;
            };
            let resource = &self.dependents[id].resource;
            let intended = Intended {
                kind: resource.kind.clone(),
                name: resource.name.clone(),
                before: change.base.replicas,
                after: change.replicas(),
            };
            if !before.contains(&intended) {
                cx.report(Report::WouldWrite(
                    id,
                    direction,
                    intended.before,
                    intended.after,
                ));
            }
            self.intended.push(intended);
        }
    }

    /// Advances a scaling as far as it goes now. Returns true if it has ended.
    fn advance(&mut self, goal: Option<Goal>, cx: &mut Context<'_>) -> bool {
        let Some(scaling) = self.phase.scaling() else {
            return false;
        };
        let direction = scaling.direction;
        if self.takes_part(direction, cx.env) {
            self.report_begun(cx);
        }
        let scope = goal.map_or(Scope::HeldDown, |goal| goal.scope);
        loop {
            for id in self.dependent_ids() {
                self.step(scaling, scope, id, cx);
            }
            let Some((_, levels)) = self.phase.scaling_mut() else {
                return false;
            };
            let Some(left) = levels.open_next(scaling, &mut self.dependents, &self.config, cx.now)
            else {
                break;
            };
            for id in left {
                cx.report(Report::LeftBehind(id));
            }
        }
        let Some((_, levels)) = self.phase.scaling_mut() else {
            return false;
        };
        if levels.are_over(&self.dependents) {
            self.finish(cx);
            return true;
        }
        if let Some(next) = levels.next(direction, &self.dependents, &self.config, cx.now) {
            cx.wake_at(next, Wake::Step);
        }
        self.wake_for_retries(cx);
        if direction == Direction::Down {
            self.probes
                .request(ProbeReason::Protecting(scaling.began), cx.now);
        }
        false
    }

    /// Reports that a scaling has begun, once this replica takes part in it: most that a standby
    /// follows step by step are all the leader's.
    fn report_begun(&mut self, cx: &mut Context<'_>) {
        if let Some((scaling, _)) = self.phase.scaling_mut()
            && !std::mem::replace(&mut scaling.reported, true)
        {
            cx.report(Report::Begun(scaling.direction));
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        let Some(scaling) = self.phase.scaling() else {
            return;
        };
        let count = |wanted: fn(&Step) -> bool| {
            let steps = self.dependents.iter().map(|dependent| &dependent.step);
            steps.filter(|step| wanted(step)).count()
        };
        let written = count(|step| step.written);
        let failed = count(|step| step.stage == Stage::Failed);
        self.end_scaling();
        let before = self.ended.map_or(0, |ended| ended.failures);
        self.ended = Some(Ended {
            at: cx.now,
            failures: if failed > 0 {
                before.saturating_add(1)
            } else {
                0
            },
        });
        if scaling.reported {
            cx.report(Report::Ended(scaling.direction, written, failed));
        }
    }

    fn step(&mut self, scaling: Scaling, scope: Scope, id: DependentId, cx: &mut Context<'_>) {
        let direction = scaling.direction;
        if self.dependents[id].ends_wait(cx.now) {
            cx.report(Report::NotReady(id));
        }
        if self.is_due_again(scaling, scope, id, cx) {
            self.dependents[id].begin(direction, self.config.dependent(id), cx.now);
        }
        if !matches!(self.dependents[id].step.stage, Stage::Due(from) if from <= cx.now) {
            return;
        }
        let change = match self.plan(id, direction, scope, cx) {
            Ok(Some(change)) => change,
            Ok(None) => return self.settle(id, direction, cx),
            // The leader says so, as long as it acts.
            Err(_) if !self.takes_part(direction, cx.env) => {
                return self.settle(id, direction, cx);
            }
            Err(refusal) => return self.try_again(id, direction, refusal, cx),
        };
        // The delay is waited for once, and only when there is something to scale; protection does
        // not wait for it past its deadline.
        let delay = span(direction.info(self.config.dependent(id)).initial_delay);
        let from = match direction {
            Direction::Down => scaling.deadline.limit(cx.now + delay, cx.now),
            Direction::Up => cx.now + delay,
        };
        let step = &mut self.dependents[id].step;
        if change.write.replicas.is_some() && !step.delayed && from > cx.now {
            step.delayed = true;
            return step.begin(from);
        }
        match self.decide(
            Candidate {
                id,
                direction,
                scaling: Some(scaling),
            },
            cx.env,
            cx.now,
        ) {
            Decision::Write(_) => {
                self.dependents[id].step.stage = Stage::AwaitingPermit;
                cx.actions.push(Action::AcquirePermit(id, direction));
            }
            decision => self.follow(id, direction, decision, cx),
        }
    }

    /// True if a dependent that has had its step is to be written again: one that a restore could
    /// not scale, or one that others have changed since.
    fn is_due_again(
        &self,
        scaling: Scaling,
        scope: Scope,
        id: DependentId,
        cx: &Context<'_>,
    ) -> bool {
        let dependent = &self.dependents[id];
        match dependent.step.stage {
            Stage::Failed => {
                scaling.direction == Direction::Up
                    && dependent
                        .tried_again_at()
                        .is_some_and(|again| again <= cx.now)
            }
            Stage::Done(_) => self
                .intends(id, scaling.direction, scope, cx.env, cx.now)
                .is_some(),
            _ => false,
        }
    }

    /// Plans a write, if there is something to write. Fails if the state is unknown or a mandatory
    /// resource is missing.
    fn plan(
        &self,
        id: DependentId,
        direction: Direction,
        scope: Scope,
        cx: &Context<'_>,
    ) -> Result<Option<PlannedWrite>, Refusal> {
        match self.dependents[id].state() {
            DependentState::Unknown => Err(Refusal::SeedUnknown),
            DependentState::Unscalable(why) => Err(Refusal::Unscalable(*why)),
            DependentState::Absent if self.config.dependent(id).optional => Ok(None),
            DependentState::Absent => Err(Refusal::NotFound),
            DependentState::Present(_) => Ok(self.intends(id, direction, scope, cx.env, cx.now)),
        }
    }

    /// A dependent is as it should be: others have done it, or a write whose answer was lost.
    fn settle(&mut self, id: DependentId, direction: Direction, cx: &mut Context<'_>) {
        let dependent = &mut self.dependents[id];
        let observed = dependent.observed().cloned();
        match observed.and_then(|observed| dependent.step.retry.landed(&observed)) {
            Some(change) => self.written(id, direction, change, None, cx),
            None => dependent.done(None),
        }
    }

    fn try_again(
        &mut self,
        id: DependentId,
        direction: Direction,
        refusal: Refusal,
        cx: &mut Context<'_>,
    ) {
        let dependent = &mut self.dependents[id];
        let step = &mut dependent.step;
        match step.retry.pause_after(&refusal) {
            Some(pause) => step.stage = Stage::Due(cx.now + span(pause)),
            None => {
                step.stage = Stage::Failed;
                if dependent.scaling_failed(&refusal, cx.now) {
                    cx.report(Report::NotScaled(id, direction, refusal));
                }
            }
        }
    }

    pub(super) fn on_permitted(&mut self, id: DependentId, cx: &mut Context<'_>) {
        let Some(scaling) = self.phase.scaling() else {
            return cx.actions.push(Action::Cancel(id));
        };
        let direction = scaling.direction;
        let scope = self.goal(cx.env).map_or(Scope::HeldDown, |goal| goal.scope);
        let planned = self.plan(id, direction, scope, cx);
        let write = Candidate {
            id,
            direction,
            scaling: Some(scaling),
        };
        let decision = self.decide(write, cx.env, cx.now);
        let step = &mut self.dependents[id].step;
        if let (Ok(Some(change)), Decision::Write(judged_at)) = (planned, decision) {
            step.stage = Stage::Writing(change.clone(), cx.now);
            cx.actions.push(Action::Write(Order {
                dependent: id,
                change,
                judged_at,
                limit: step.retry.limit(),
                needs_lead: cx.env.leads,
            }));
        } else {
            // Others wait for the permit, so it is given back; what follows instead is decided at
            // once, as for any step that is due.
            step.stage = Stage::Due(cx.now);
            cx.actions.push(Action::Cancel(id));
        }
    }

    pub(super) fn on_written(
        &mut self,
        id: DependentId,
        result: Result<Arc<Observed>, Refusal>,
        cx: &mut Context<'_>,
    ) {
        let Some(Scaling { direction, .. }) = self.phase.scaling() else {
            return;
        };
        let dependent = &mut self.dependents[id];
        let Stage::Writing(change, sent) = dependent.step.stage.clone() else {
            return;
        };
        match result {
            Ok(after) => {
                dependent.wrote(after, cx.now);
                self.written(id, direction, change, Some(cx.now - sent), cx);
            }
            // It went away in the meantime; what follows under its name is another resource.
            Err(Refusal::NotFound) => {
                dependent.is_gone(Some(change.base), cx.now);
                dependent.done(None);
            }
            Err(refusal) => {
                let conflict = refusal == Refusal::Conflict;
                dependent.step.retry.failed(change, &refusal);
                self.try_again(id, direction, refusal, cx);
                let step = &mut self.dependents[id].step;
                if conflict && matches!(step.stage, Stage::Due(_)) {
                    step.stage = Stage::Reading;
                    cx.actions.push(Action::Read(id, step.retry.limit()));
                }
            }
        }
    }

    pub(super) fn on_read(
        &mut self,
        id: DependentId,
        result: Result<DependentState, Refusal>,
        cx: &mut Context<'_>,
    ) {
        let dependent = &mut self.dependents[id];
        let (Some(scaling), Stage::Reading) = (self.phase.scaling(), &dependent.step.stage) else {
            return;
        };
        let state = match result {
            Ok(state) => state,
            Err(refusal) => {
                return self.try_again(id, scaling.direction, refusal, cx);
            }
        };
        if state == DependentState::Absent {
            dependent.is_gone(dependent.observed().cloned(), cx.now);
        } else if dependent.read(state, cx.now) {
            self.watch.facts.marked();
        }
        dependent.step.stage = Stage::Due(cx.now);
    }

    /// A write was made, whether or not it was answered.
    fn written(
        &mut self,
        id: DependentId,
        direction: Direction,
        change: PlannedWrite,
        took: Option<TimeDelta>,
        cx: &mut Context<'_>,
    ) {
        let dependent = &mut self.dependents[id];
        let waits = direction == Direction::Up && change.write.replicas.is_some();
        dependent.done(waits.then_some(cx.now));
        dependent.step.written = true;
        self.report_begun(cx);
        let dependent = &mut self.dependents[id];
        let holds_down = change.write.marks.held_down;
        let without_lead = !cx.env.leads;
        if without_lead {
            dependent.written_as_standby = Some(cx.now);
        }
        cx.report(Report::Written {
            turn: cx.now - dependent.step.began,
            dependent: id,
            direction,
            took,
            without_lead,
            change,
        });
        if holds_down {
            self.watch.facts.marked();
        }
    }
}
