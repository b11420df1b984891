//! What the machine writes, and when.

use std::sync::Arc;

use chrono::TimeDelta;

use super::{Action, Context, Direction, Intended, Order, Report, Shoot};
use crate::config::DependentId;
use crate::moment::Moment;
use crate::refusal::Refusal;
use crate::replicas::{DependentState, Observed, PlannedWrite, scale_down, scale_up};
use crate::scaling::{Levels, Scaling};
use crate::schedule::Failures;
use crate::span;
use crate::step::{Stage, Step};
use crate::verdict::Scope;

/// How long after the verdict probes follow each other closely while a scale-down is under way
/// (D-57).
const CLOSE_PROBES: TimeDelta = TimeDelta::seconds(10);

#[derive(Clone, Debug, Default)]
pub(super) struct ScalingState {
    pub current: Option<Scaling>,
    pub levels: Levels,
    /// How many have begun.
    pub begun: u64,
    /// How the last one ended. The next one rests on a later probe.
    pub ended: Option<Ended>,
    /// Scale-downs in a row that could not be done in full.
    pub failures: u32,
    /// What a dry run would write.
    pub intended: Vec<Intended>,
}

#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Ended {
    at: Moment,
    in_full: bool,
}

impl Shoot {
    /// Makes what is under way be what the verdict and the environment ask for.
    pub(super) fn act(&mut self, cx: &mut Context<'_>) {
        if self.must_abandon(cx) {
            self.abandon(cx);
        }
        if self.scaling.current.is_none() {
            self.begin(cx);
        }
        if self.advance(cx) {
            // What has fallen due meanwhile wants a later probe.
            self.begin(cx);
        }
    }

    fn must_abandon(&self, cx: &Context<'_>) -> bool {
        let Some(scaling) = self.scaling.current else {
            return false;
        };
        let turned = match self.aim(cx.env) {
            Some((direction, _)) => direction != scaling.direction,
            None => self.owner.stood_down,
        };
        turned || cx.env.paused == Some(true) || !cx.env.is_ours
    }

    pub(super) fn abandon(&mut self, cx: &mut Context<'_>) {
        let Some(scaling) = self.scaling.current else {
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
        (self.scaling.current, self.scaling.levels) = (None, Levels::default());
        for dependent in self.dependents.iter_mut() {
            dependent.step = Step::default();
        }
    }

    /// Begins a scaling if there is something to do, and a probe that is newer than all that it
    /// depends on says so.
    fn begin(&mut self, cx: &mut Context<'_>) {
        let Some((direction, scope)) = self.aim(cx.env) else {
            return self.scaling.intended.clear();
        };
        if cx.env.dry_run {
            return self.report_dry_run(direction, scope, cx);
        }
        let mut due = Vec::new();
        for id in self.dependent_ids() {
            if self.is_due(id, direction, scope, cx) {
                due.push(id);
            }
        }
        if due.is_empty() {
            return;
        }
        let Some(judged_at) = self.evidence(direction, cx) else {
            return;
        };
        let rests = due
            .into_iter()
            .any(|id| self.is_fresh_for(id, judged_at, None, cx));
        // What a scaling could not do, the next one tries after a later probe; for all else one is
        // requested.
        if let Some(ended) = self.scaling.ended.filter(|ended| ended.at >= judged_at) {
            if ended.in_full {
                cx.request_reprobe(None);
            }
            return;
        }
        if rests {
            self.scaling.begun += 1;
            self.scaling.current = Some(Scaling {
                id: self.scaling.begun,
                direction,
                ordering_deadline: self.ordering_deadline(cx.now),
                reported: false,
            });
            self.scaling.levels = Levels::new(direction, &self.config, cx.now);
        }
    }

    /// Whether a dependent would be written. Protection that cannot know that tries, and says so.
    /// What could not be scaled is tried again with a back-off, unless protection can write it.
    fn is_due(
        &self,
        id: DependentId,
        direction: Direction,
        scope: Scope,
        cx: &mut Context<'_>,
    ) -> bool {
        let dependent = &self.dependents[id];
        let again = dependent.tried_again_at().filter(|&at| at > cx.now);
        if let Some(at) = again {
            cx.wake_at(at);
        }
        match dependent.state() {
            DependentState::Unknown => {
                direction == Direction::Down && cx.env.leads && again.is_none()
            }
            _ if direction == Direction::Up && again.is_some() => false,
            _ => self.intends(id, direction, scope, cx).is_some(),
        }
    }

    fn intends(
        &self,
        id: DependentId,
        direction: Direction,
        scope: Scope,
        cx: &mut Context<'_>,
    ) -> Option<PlannedWrite> {
        let dependent = &self.dependents[id];
        let base = Arc::clone(dependent.observed()?);
        let write = match direction {
            Direction::Down => scale_down(&base, dependent.was_held_down()),
            Direction::Up => scale_up(&base, scope, cx.env.options.restore_only_held_down.value),
        }?;
        let change = PlannedWrite { base, write };
        (cx.env.leads || cx.env.dry_run || self.standby_may_apply(id, direction, &change, cx))
            .then_some(change)
    }

    /// In a dry run says what would be written: each write once, for as long as it stays the one
    /// that would be made.
    fn report_dry_run(&mut self, direction: Direction, scope: Scope, cx: &mut Context<'_>) {
        if self.judged_at(cx.env) < self.writes_from(direction, cx.env) {
            return;
        }
        let before = std::mem::take(&mut self.scaling.intended);
        if cx.env.paused == Some(true) || !self.is_owner(direction, cx) {
            return;
        }
        for id in self.dependent_ids() {
            let Some(change) = self.intends(id, direction, scope, cx) else {
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
            self.scaling.intended.push(intended);
        }
    }

    /// Advances a scaling as far as it goes now. Returns whether it has ended.
    fn advance(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(scaling) = self.scaling.current else {
            return false;
        };
        let direction = scaling.direction;
        if self.takes_part(direction, cx.env) {
            self.report_begun(cx);
        }
        let only_just_down = self
            .verdicts
            .down
            .is_some_and(|down| cx.now < down + CLOSE_PROBES);
        if direction == Direction::Down && only_just_down {
            self.probing.again_soon(cx.now);
        }
        loop {
            for id in self.dependent_ids() {
                self.step(scaling, id, cx);
            }
            let levels = &mut self.scaling.levels;
            let Some(left) = levels.open_next(scaling, &mut self.dependents, &self.config, cx.now)
            else {
                break;
            };
            for id in left {
                cx.report(Report::LeftBehind(id));
            }
        }
        let levels = &self.scaling.levels;
        if !levels.are_over(&self.dependents) {
            let next = levels.next(direction, &self.dependents, &self.config, cx.now);
            if let Some(next) = next {
                cx.wake_at(next);
            }
            return false;
        }
        self.finish(cx);
        true
    }

    /// Reports that a scaling has begun, once this replica takes part in it: most that a standby
    /// follows step by step are all the leader's.
    fn report_begun(&mut self, cx: &mut Context<'_>) {
        if let Some(scaling) = &mut self.scaling.current
            && !std::mem::replace(&mut scaling.reported, true)
        {
            cx.report(Report::Begun(scaling.direction));
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        let Some(Scaling {
            direction,
            reported,
            ..
        }) = self.scaling.current
        else {
            return;
        };
        let count = |wanted: fn(&Step) -> bool| {
            let steps = self.dependents.iter().map(|dependent| &dependent.step);
            steps.filter(|step| wanted(step)).count()
        };
        let written = count(|step| step.written);
        let failed = count(|step| step.stage == Stage::Failed);
        self.end_scaling();
        if reported {
            cx.report(Report::Ended(direction, written, failed));
        }
        self.scaling.ended = Some(Ended {
            at: cx.now,
            in_full: failed == 0,
        });
        if direction == Direction::Up || failed == 0 {
            self.scaling.failures = 0;
            return;
        }
        self.scaling.failures = self.scaling.failures.saturating_add(1);
        let failures = Failures {
            in_a_row: self.scaling.failures,
            urgent: true,
        };
        self.probing
            .no_later_than(self.scheduled(Some(failures), cx));
    }

    fn step(&mut self, scaling: Scaling, id: DependentId, cx: &mut Context<'_>) {
        let direction = scaling.direction;
        if self.dependents[id].ends_wait(cx.now) {
            cx.report(Report::NotReady(id));
        }
        let dependent = &mut self.dependents[id];
        if direction == Direction::Up
            && dependent.step.stage == Stage::Failed
            && dependent
                .tried_again_at()
                .is_some_and(|again| again <= cx.now)
        {
            dependent.begin(direction, self.config.dependent(id), cx.now);
        }
        if !matches!(self.dependents[id].step.stage, Stage::Due(from) if from <= cx.now) {
            return;
        }
        let change = match self.decide(id, direction, cx) {
            Ok(Some(change)) => change,
            Ok(None) => return self.settle(id, direction, cx),
            // The leader says so, as long as it acts.
            Err(_) if !self.takes_part(direction, cx.env) => {
                return self.settle(id, direction, cx);
            }
            Err(refusal) => return self.try_again(id, direction, refusal, cx),
        };
        let delay = span(direction.info(self.config.dependent(id)).initial_delay);
        let step = &mut self.dependents[id].step;
        // The delay is waited once, and only when there is something to scale (D-18, D-35).
        if change.write.replicas.is_some() && !step.delayed && delay > TimeDelta::zero() {
            step.delayed = true;
            step.begin(cx.now + delay);
        } else if self.evidence_for(scaling, id, cx).is_some() {
            self.dependents[id].step.stage = Stage::AwaitingPermit;
            cx.actions.push(Action::AcquirePermit(id, direction));
        }
    }

    /// Plans the write. Fails if the state is unknown or a required dependent does not exist.
    fn decide(
        &self,
        id: DependentId,
        direction: Direction,
        cx: &mut Context<'_>,
    ) -> Result<Option<PlannedWrite>, Refusal> {
        match self.dependents[id].state() {
            DependentState::Unknown => Err(Refusal::SeedUnknown),
            DependentState::NoSuchKind => {
                let resource = self.dependents[id].resource.clone();
                Err(Refusal::NoSuchKind(resource))
            }
            DependentState::Absent if self.config.dependent(id).optional => Ok(None),
            DependentState::Absent => Err(Refusal::NotFound),
            DependentState::Present(_) => {
                let scope = self.aim(cx.env).map_or(Scope::HeldDown, |(_, scope)| scope);
                Ok(self.intends(id, direction, scope, cx))
            }
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
        let Some(scaling) = self.scaling.current else {
            return cx.actions.push(Action::Cancel(id));
        };
        let decision = self.decide(id, scaling.direction, cx);
        let judged_at = self.evidence_for(scaling, id, cx);
        let step = &mut self.dependents[id].step;
        if let (Ok(Some(change)), Some(judged_at)) = (decision, judged_at) {
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
        let Some(Scaling {
            id: by, direction, ..
        }) = self.scaling.current
        else {
            return;
        };
        let dependent = &mut self.dependents[id];
        let Stage::Writing(change, sent) = dependent.step.stage.clone() else {
            return;
        };
        match result {
            Ok(after) => {
                dependent.wrote(after, by, cx.now);
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
        let (Some(scaling), Stage::Reading) = (self.scaling.current, &dependent.step.stage) else {
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
            self.markers.appeared(self.probing.completed, cx.now);
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
            self.markers.appeared(self.probing.completed, cx.now);
            self.markers.by_us = cx.now;
            self.probing.again_soon(cx.now);
        }
    }
}
