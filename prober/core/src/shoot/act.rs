//! What the machine writes, and when.

use std::sync::Arc;

use chrono::TimeDelta;

use super::{Action, Context, Direction, Ended, Intended, Order, Reason, Report, Shoot};
use crate::config::ResourceRef;
use crate::replicas::{Change, DependentState, Observed, scale_down, scale_up};
use crate::retry::Refusal;
use crate::scaling::{Scaling, Stage};
use crate::schedule::Failure;
use crate::span;
use crate::verdict::Scope;

/// For so long after the verdict probes follow each other closely while a scale-down is under way
/// (D-57).
const CLOSE_PROBES: TimeDelta = TimeDelta::seconds(10);

impl Shoot {
    /// Makes what is under way be what the verdict and the environment ask for.
    pub(super) fn act(&mut self, cx: &mut Context<'_>) {
        if self.must_abandon(cx) {
            self.drop_scaling(cx);
        }
        if self.scaling.is_none() {
            self.begin(cx);
        }
        if self.advance(cx) {
            // What has fallen due meanwhile wants a later probe.
            self.begin(cx);
        }
    }

    fn must_abandon(&self, cx: &Context<'_>) -> bool {
        let Some(scaling) = &self.scaling else {
            return false;
        };
        let turned = self.aim(cx.env).map_or(self.stood_down, |(direction, _)| {
            direction != scaling.direction
        });
        turned || cx.env.paused == Some(true) || !cx.env.is_ours
    }

    pub(super) fn drop_scaling(&mut self, cx: &mut Context<'_>) {
        let Some(scaling) = self.scaling.take() else {
            return;
        };
        for (at, step) in scaling.steps.iter().enumerate() {
            if matches!(
                step.stage,
                Stage::AwaitingPermit | Stage::Reading | Stage::Writing(..)
            ) {
                cx.actions.push(Action::Cancel(at));
            }
        }
        cx.report(Report::Abandoned(scaling.direction));
    }

    /// Begins a scaling if there is something to do, and a probe that is newer than all that it
    /// depends on says so.
    fn begin(&mut self, cx: &mut Context<'_>) {
        let Some((direction, scope)) = self.aim(cx.env) else {
            return self.intended.clear();
        };
        if cx.env.dry_run {
            return self.report_dry_run(direction, scope, cx);
        }
        let due: Vec<usize> = (0..self.known.len())
            .filter(|&at| self.is_due(at, direction, scope, cx))
            .collect();
        if due.is_empty() {
            return;
        }
        let Some(judged_at) = self.evidence(direction, cx) else {
            return;
        };
        let rests = due
            .into_iter()
            .any(|at| self.is_behind(judged_at, at, direction, None, cx));
        // What a scaling could not do, the next one tries after a later probe; for all else one is
        // requested.
        let ended = self.ended.filter(|ended| ended.at >= judged_at);
        if ended.is_some_and(|ended| ended.in_full) {
            cx.request_reprobe(None);
        }
        if ended.is_some() || !rests {
            return;
        }
        self.scalings += 1;
        let deadline = self.ordering_deadline(cx.now);
        self.scaling = Some(Scaling::new(
            self.scalings,
            direction,
            &cx.env.config.dependents,
            deadline,
            cx.now,
        ));
        cx.report(Report::Begun(direction));
    }

    /// Whether a dependent would be written. Protection that cannot know that tries, and says so.
    fn is_due(&self, at: usize, direction: Direction, scope: Scope, cx: &mut Context<'_>) -> bool {
        match self.known[at].state() {
            DependentState::Unknown => direction == Direction::Down && cx.env.leads,
            _ => self.intends(at, direction, scope, cx).is_some(),
        }
    }

    fn intends(
        &self,
        at: usize,
        direction: Direction,
        scope: Scope,
        cx: &mut Context<'_>,
    ) -> Option<Change> {
        let base = Arc::clone(self.known[at].observed()?);
        let write = match direction {
            Direction::Down => scale_down(&base, self.known[at].was_held_down()),
            Direction::Up => scale_up(&base, scope, cx.env.options.restore_only_held_down.value),
        }?;
        let change = Change { base, write };
        (cx.env.leads || cx.env.dry_run || self.standby_may_apply(at, direction, &change, cx))
            .then_some(change)
    }

    /// In a dry run says what would be written: each write once, for as long as it stays the one
    /// that would be made.
    fn report_dry_run(&mut self, direction: Direction, scope: Scope, cx: &mut Context<'_>) {
        if self.judged_at(cx.env) < self.ripe_from(direction, cx.env) {
            return;
        }
        let before = std::mem::take(&mut self.intended);
        if cx.env.paused == Some(true) || !self.is_owner(direction, cx) {
            return;
        }
        for at in 0..self.known.len() {
            let Some(change) = self.intends(at, direction, scope, cx) else {
                continue;
            };
            let ResourceRef { kind, name, .. } = self.resources[at].clone();
            let intended = Intended {
                kind,
                name,
                before: change.base.replicas,
                after: change.replicas(),
            };
            if !before.contains(&intended) {
                cx.report(Report::WouldWrite(
                    at,
                    direction,
                    intended.before,
                    intended.after,
                ));
            }
            self.intended.push(intended);
        }
    }

    /// Takes a scaling as far as it goes now. Says whether that was its end.
    fn advance(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(mut scaling) = self.scaling.take() else {
            return false;
        };
        if scaling.direction == Direction::Down
            && self
                .down_since
                .is_some_and(|(verdict, _)| cx.now < verdict + CLOSE_PROBES)
        {
            self.probe_again_soon(cx);
        }
        loop {
            for at in scaling.opened() {
                self.step(&mut scaling, at, cx);
            }
            if !scaling.opens_level(&cx.env.config.dependents, &self.known, cx.now) {
                break;
            }
        }
        if let Some(next) = scaling.next(cx.now) {
            cx.wake_at(next);
        }
        if !scaling.is_over() {
            self.scaling = Some(scaling);
            return false;
        }
        let failed = scaling.failed();
        let written = scaling.steps.iter().filter(|step| step.written).count();
        cx.report(Report::Ended(scaling.direction, written, failed));
        self.ended = Some(Ended {
            at: cx.now,
            in_full: failed == 0,
        });
        if scaling.direction == Direction::Down && failed > 0 {
            self.failed_scalings = self.failed_scalings.saturating_add(1);
            self.next_probe = self.next_probe.min(self.scheduled(
                Some(Failure {
                    in_a_row: self.failed_scalings,
                    urgent: true,
                }),
                cx,
            ));
        } else {
            self.failed_scalings = 0;
        }
        true
    }

    fn step(&mut self, scaling: &mut Scaling, at: usize, cx: &mut Context<'_>) {
        let direction = scaling.direction;
        if scaling.ends_wait(at, &self.known[at], cx.now) {
            cx.report(Report::NotReady(at));
        }
        let Stage::Due(from) = scaling.steps[at].stage else {
            return;
        };
        if from > cx.now {
            return;
        }
        let change = match self.decide(scaling, at, cx) {
            Ok(Some(change)) => change,
            Ok(None) => return self.settle(scaling, at, cx),
            Err(reason) => return self.try_again(scaling, at, Refusal::Other, reason, cx),
        };
        let delay = span(direction.info(&cx.env.config.dependents[at]).initial_delay);
        let step = &mut scaling.steps[at];
        // The delay is waited once, and only when there is something to scale (D-18, D-35).
        if change.write.replicas.is_some() && !step.delayed && delay > TimeDelta::zero() {
            step.delayed = true;
            (step.stage, step.began) = (Stage::Due(cx.now + delay), cx.now + delay);
            return;
        }
        if self.evidence_for(scaling, at, cx).is_some() {
            scaling.steps[at].stage = Stage::AwaitingPermit;
            cx.actions.push(Action::AcquirePermit(at, direction));
        }
    }

    /// What is to be written, if anything. The error says why that cannot be said, or what must not
    /// be so.
    fn decide(
        &self,
        scaling: &Scaling,
        at: usize,
        cx: &mut Context<'_>,
    ) -> Result<Option<Change>, Reason> {
        match self.known[at].state() {
            DependentState::Unknown => Err(Reason::Unknown),
            DependentState::NoSuchKind => Err(Reason::NoSuchKind),
            DependentState::Absent if cx.env.config.dependents[at].optional => Ok(None),
            DependentState::Absent => Err(Reason::Missing),
            DependentState::Present(_) => {
                let scope = self.aim(cx.env).map_or(Scope::HeldDown, |(_, scope)| scope);
                Ok(self.intends(at, scaling.direction, scope, cx))
            }
        }
    }

    /// A dependent is as it should be: others have done it, or a write whose answer was lost.
    fn settle(&mut self, scaling: &mut Scaling, at: usize, cx: &mut Context<'_>) {
        match self.known[at]
            .observed()
            .and_then(|observed| scaling.steps[at].retry.landed(observed))
        {
            Some(change) => self.done(scaling, at, change, None, cx),
            None => scaling.steps[at].stage = Stage::Done(None),
        }
    }

    fn try_again(
        &mut self,
        scaling: &mut Scaling,
        at: usize,
        refusal: Refusal,
        reason: Reason,
        cx: &mut Context<'_>,
    ) {
        let direction = scaling.direction;
        let step = &mut scaling.steps[at];
        match step.retry.pause_after(refusal) {
            Some(pause) => step.stage = Stage::Due(cx.now + span(pause)),
            None => {
                step.stage = Stage::Failed;
                cx.report(Report::NotScaled(at, direction, reason));
            }
        }
    }

    pub(super) fn on_permitted(&mut self, at: usize, cx: &mut Context<'_>) {
        let Some(mut scaling) = self.scaling.take() else {
            return cx.actions.push(Action::Cancel(at));
        };
        let (decision, judged_at) = (
            self.decide(&scaling, at, cx),
            self.evidence_for(&scaling, at, cx),
        );
        let step = &mut scaling.steps[at];
        match (decision, judged_at) {
            (Ok(Some(change)), Some(judged_at)) => {
                step.stage = Stage::Writing(change.clone(), cx.now);
                let (limit, needs_lead) = (step.retry.limit(), cx.env.leads);
                cx.actions.push(Action::Write(Order {
                    dependent: at,
                    change,
                    judged_at,
                    limit,
                    needs_lead,
                }));
            }
            // Others wait for the permit, so it is given back; what follows instead is decided at
            // once, as for any step that is due.
            _ => {
                step.stage = Stage::Due(cx.now);
                cx.actions.push(Action::Cancel(at));
            }
        }
        self.scaling = Some(scaling);
    }

    pub(super) fn on_written(
        &mut self,
        at: usize,
        result: Result<Arc<Observed>, Refusal>,
        cx: &mut Context<'_>,
    ) {
        let Some(mut scaling) = self.scaling.take() else {
            return;
        };
        if let Stage::Writing(change, sent) = scaling.steps[at].stage.clone() {
            match result {
                Ok(after) => {
                    self.known[at].wrote(after, scaling.id, cx.now);
                    self.done(&mut scaling, at, change, Some(cx.now - sent), cx);
                }
                // It went away in the meantime; what follows under its name is another resource.
                Err(Refusal::Gone) => {
                    self.known[at].is_gone(Some(change.base), cx.now);
                    scaling.steps[at].stage = Stage::Done(None);
                }
                Err(refusal) => {
                    if refusal == Refusal::Conflict
                        && self.known[at].is_held_down()
                        && !change.base.marks.held_down
                    {
                        // So the marker that was seen while the write was under way is of others.
                        self.note_marker(cx.now);
                    }
                    scaling.steps[at].retry.failed(change, refusal);
                    self.try_again(&mut scaling, at, refusal, Reason::Refused, cx);
                    let step = &mut scaling.steps[at];
                    if refusal == Refusal::Conflict && matches!(step.stage, Stage::Due(_)) {
                        step.stage = Stage::Reading;
                        cx.actions.push(Action::Read(at, step.retry.limit()));
                    }
                }
            }
        }
        self.scaling = Some(scaling);
    }

    pub(super) fn on_read(
        &mut self,
        at: usize,
        result: Result<DependentState, Refusal>,
        cx: &mut Context<'_>,
    ) {
        let Some(mut scaling) = self.scaling.take() else {
            return;
        };
        if scaling.steps[at].stage == Stage::Reading {
            match result {
                Ok(state) => {
                    if state == DependentState::Absent {
                        let known = self.known[at].observed().cloned();
                        self.known[at].is_gone(known, cx.now);
                    } else if self.known[at].read(state, cx.now) {
                        self.note_marker(cx.now);
                    }
                    scaling.steps[at].stage = Stage::Due(cx.now);
                }
                Err(refusal) => self.try_again(&mut scaling, at, refusal, Reason::Refused, cx),
            }
        }
        self.scaling = Some(scaling);
    }

    /// A write was made, whether or not it was answered.
    fn done(
        &mut self,
        scaling: &mut Scaling,
        at: usize,
        change: Change,
        took: Option<TimeDelta>,
        cx: &mut Context<'_>,
    ) {
        let direction = scaling.direction;
        let step = &mut scaling.steps[at];
        let waits = direction == Direction::Up && change.write.replicas.is_some();
        step.stage = Stage::Done(waits.then_some(cx.now));
        step.written = true;
        if change.write.marks.held_down {
            (self.marked_after, self.protected_at) = (self.answered_at, cx.now);
            self.probe_again_soon(cx);
        }
        let (turn, without_lead) = (cx.now - step.began, !cx.env.leads);
        if without_lead {
            self.known[at].stood_in = Some(cx.now);
        }
        cx.report(Report::Written {
            dependent: at,
            direction,
            change,
            took,
            turn,
            without_lead,
        });
    }
}
