//! One shoot as a state machine without I/O: inputs and the time go in, actions and the next moment
//! come out. It decides when to probe, what follows, and what is written when; whoever drives it
//! probes, waits, writes and reports, and decides nothing.
//!
//! ```text
//! leases, nodes, failures --> judge --> verdict --> goal --> scaling, level by level --> permit --> write
//! dependents, Cluster, pause, lead, answers --> facts --> requirements ----^--------------^
//! ```
//!
//! Each decision is made on what is known at that moment, and a write once its permit is there:
//! nothing is decided before a wait and carried out after it.

mod ended;
mod facts;
mod goal;
mod interface;
mod phase;
mod probing;
mod requirement;
mod standby;
mod writing;

use std::sync::Arc;

use self::ended::Ended;
use self::facts::Facts;
pub use self::interface::{
    Action, Environment, Input, Intended, Order, Owner, ProbeFailure, Report, Start, Verified,
    Waits, Wake,
};
use self::phase::Phase;
use self::probing::{ProbeReason, ProbeSchedule};
pub use self::requirement::Requirement;
#[cfg(test)]
pub(crate) use self::requirement::SWITCHED_OFF;
use self::standby::Verification;
pub use super::dependent::DependentRecord;
use super::dependent::Dependents;
use super::judgement::{CountedLease, Finding, Judge, Rules};
use super::lease::LeaseList;
use super::moment::{Moment, RequestTimes};
use super::plan::Direction;
use super::replicas::{DependentState, scale_up};
use super::schedule::Failures;
use super::verdict::{Scope, Verdict};
use crate::config::{Config, Dependent, DependentId, ResourceRef};
use crate::lifecycle::ShootSettings;

/// The state machine of one shoot.
///
/// Call [`Self::input`] for each answer to an action, for each change of the [`Environment`], and
/// with [`Input::Woken`] at the moment of [`Self::next`]. Carry out the actions that it returns in
/// their order. Each of them but a report and a cancellation is answered by one input, unless it is
/// cancelled; an answer to what was cancelled is ignored. [`Self::next`] is valid until the next
/// input.
///
/// An input is observed (what has changed around the shoot), applied (what the answer says), and
/// acted on: [`Self::goal`] says what should become of the dependents, [`Self::decide`] whether a
/// write may be made, and [`Self::act`] alone asks for anything.
#[derive(Clone, Debug)]
pub struct Shoot {
    /// The config and the settings of the last input.
    config: Arc<Config>,
    settings: ShootSettings,
    dependents: Dependents,
    probes: ProbeSchedule,
    /// Direction of the last verdict that was no hold.
    direction: Option<Direction>,
    /// The pause that was read last.
    was_paused: bool,
    phase: Phase,
    /// The last scaling.
    ended: Option<Ended>,
    /// Writes that a dry run would make.
    intended: Vec<Intended>,
    watch: Watch,
    wake: Option<(Moment, Wake)>,
}

/// State that begins anew when a shoot that belonged elsewhere is ours again; all else is kept.
#[derive(Clone, Debug)]
struct Watch {
    start: Start,
    judge: Judge,
    facts: Facts,
    verification: Verification,
    /// The direction in which the owner record prevents a write, once that is reported.
    prevented: Option<Direction>,
}

impl Watch {
    fn new(start: Start) -> Self {
        Self {
            start,
            judge: Judge::default(),
            facts: Facts::default(),
            verification: Verification::default(),
            prevented: None,
        }
    }
}

/// One input, and what follows from it.
struct Context<'a> {
    env: &'a Environment<'a>,
    now: Moment,
    actions: Vec<Action>,
    wake: Option<(Moment, Wake)>,
}

impl<'a> Context<'a> {
    fn new(env: &'a Environment<'a>, now: Moment) -> Self {
        Self {
            env,
            now,
            actions: Vec::new(),
            wake: None,
        }
    }

    fn wake_at(&mut self, moment: Moment, why: Wake) {
        if moment > self.now && self.wake.is_none_or(|(wake, _)| moment < wake) {
            self.wake = Some((moment, why));
        }
    }

    fn report(&mut self, report: Report) {
        self.actions.push(Action::Report(report));
    }
}

impl Shoot {
    pub fn new(start: Start, env: &Environment<'_>, now: Moment) -> Self {
        let mut shoot = Self {
            config: Arc::clone(env.config),
            settings: env.settings.clone(),
            dependents: env
                .config
                .dependents
                .iter()
                .map(DependentRecord::new)
                .collect(),
            probes: ProbeSchedule::new(env.chance),
            direction: None,
            was_paused: false,
            phase: Phase::default(),
            ended: None,
            intended: Vec::new(),
            watch: Watch::new(start),
            wake: None,
        };
        shoot.observe_dependents(env, now);
        let first = shoot.first_probe(env, now);
        shoot.probes.schedule(first);
        shoot
    }

    pub fn input(&mut self, input: Input, env: &Environment<'_>, now: Moment) -> Vec<Action> {
        let mut cx = Context::new(env, now);
        self.observe(&mut cx);
        self.apply(input, &mut cx);
        self.act(&mut cx);
        self.wake = cx.wake;
        cx.actions
    }

    /// Returns when [`Input::Woken`] is wanted if nothing else happens before, and what for; `None`
    /// while a probe is under way and nothing else is due.
    pub fn next(&self) -> Option<(Moment, Wake)> {
        let probes = self.probes.is_idle() && !self.phase.has_stood_down();
        let probe = probes.then(|| (self.probes.due(), Wake::Probe));
        probe
            .into_iter()
            .chain(self.wake)
            .min_by_key(|&(moment, _)| moment)
    }

    /// Takes in what has changed around the shoot.
    fn observe(&mut self, cx: &mut Context<'_>) {
        let (env, now) = (cx.env, cx.now);
        let reloaded = self.reload(cx);
        self.follow_owner(cx);
        self.observe_dependents(env, now);
        self.was_paused = env.paused.unwrap_or(self.was_paused);
        let prevented = self.watch.prevented;
        self.watch.prevented = prevented.filter(|&direction| !Self::is_owned(direction, env));
        let is_free = self.is_free(env);
        if self.watch.facts.observe(env, is_free, now) && self.verdict().is_some() {
            // A leader probes sooner. A first probe, and one after a failure, keeps its time.
            let by = self.scheduled(None, cx);
            self.probes.request(ProbeReason::Terms(by), now);
        }
        let has_new_settings = self.settings != *env.settings;
        if has_new_settings {
            self.settings.clone_from(env.settings);
            self.probes.request(ProbeReason::Terms(now), now);
        }
        if reloaded || has_new_settings {
            self.watch.facts.same_terms = now;
        }
    }

    /// Applies a changed config: dependents that it still names stay known. Returns true if it is
    /// another one.
    fn reload(&mut self, cx: &mut Context<'_>) -> bool {
        let config = cx.env.config;
        if Arc::ptr_eq(config, &self.config) {
            return false;
        }
        self.config = Arc::clone(config);
        let dependents = &config.dependents;
        let named = dependents.iter().map(|dependent| &dependent.resource);
        if !named.eq(self.dependents.iter().map(|known| &known.resource)) {
            self.abandon(cx);
            let record = |dependent: &Dependent| {
                let mut known = self.dependents.iter();
                known
                    .find(|known| known.resource == dependent.resource)
                    .cloned()
                    .unwrap_or_else(|| DependentRecord::new(dependent))
            };
            self.dependents = dependents.iter().map(record).collect();
        }
        true
    }

    /// Stands down when the shoot is lost, and starts again when it is ours again: as for a shoot
    /// that becomes eligible now. A probe that is under way will be answered, and a replica that
    /// does not lead has the one write that it had.
    fn follow_owner(&mut self, cx: &mut Context<'_>) {
        let is_lost = cx.env.owner.is_elsewhere();
        if self.phase.has_stood_down() && !is_lost {
            self.abandon(cx);
            let start = Start {
                eligible: cx.now,
                in_operation: self.watch.start.in_operation || cx.now >= self.initial_delay_ends(),
            };
            self.watch = Watch::new(start);
            let first = self.first_probe(cx.env, cx.now);
            self.probes.schedule(first);
        }
        self.phase.set_lost(is_lost);
    }

    fn observe_dependents(&mut self, env: &Environment<'_>, now: Moment) {
        for (known, state) in self.dependents.iter_mut().zip(&env.dependents) {
            if known.observe(state.clone(), now) {
                self.watch.facts.marked();
            }
        }
    }

    /// Takes in an answer.
    fn apply(&mut self, input: Input, cx: &mut Context<'_>) {
        match input {
            Input::Woken => {}
            Input::Leases(times, leases) => self.on_leases(times, &leases, cx),
            // The leases were listed before the shoot was lost and regained.
            Input::Nodes(_) if !self.watch.judge.has_leases() => {
                self.on_failure(ProbeFailure::Other, cx);
            }
            Input::Nodes(nodes) => {
                self.watch.judge.set_nodes(nodes);
                self.complete(self.watch.judge.judge(&self.rules(cx.env)), cx);
            }
            Input::NodesConfirmed => {
                let finding = Finding {
                    verdict: Verdict::ScaleUpHeldDown,
                    judged_at: cx.now,
                    ..self.watch.judge.judge(&self.rules(cx.env))
                };
                self.complete(finding, cx);
            }
            Input::Failed(failure) => self.on_failure(failure, cx),
            Input::Verified(verified) => self.on_verified(verified, cx),
            Input::Permitted(dependent) => self.on_permitted(dependent, cx),
            Input::Read(dependent, result) => self.on_read(dependent, result, cx),
            Input::Written(dependent, result) => self.on_written(dependent, result, cx),
        }
    }

    fn on_leases(&mut self, times: RequestTimes, leases: &LeaseList, cx: &mut Context<'_>) {
        let rules = self.rules(cx.env);
        self.watch.judge.observe(times, leases.iter(), rules.grace);
        let Some(machines) = &cx.env.machines else {
            cx.report(Report::MachinesUnknown);
            return self.on_failure(ProbeFailure::Other, cx);
        };
        self.watch.judge.set_machines(Arc::clone(machines));
        let is_settled = self.is_settled(cx.env);
        let good_since = self.nodes_good_since(cx);
        if self.watch.judge.wants_nodes(&rules, is_settled, good_since) {
            self.probes.wants_nodes();
            cx.actions.push(Action::ListNodes);
        } else {
            self.complete(self.watch.judge.judge(&rules), cx);
        }
    }

    fn complete(&mut self, finding: Finding, cx: &mut Context<'_>) {
        self.probes.complete();
        self.adopt(finding, cx.now, cx);
        self.probes.schedule(self.scheduled(None, cx));
    }

    fn on_failure(&mut self, failure: ProbeFailure, cx: &mut Context<'_>) {
        self.probes.fail(failure, cx.now);
        let failures = Failures {
            in_a_row: self.probes.failures(),
            urgent: self.finding().is_none(),
        };
        self.probes.schedule(self.scheduled(Some(failures), cx));
    }

    /// Takes in a finding of a probe that was complete at that moment.
    fn adopt(&mut self, finding: Finding, completed: Moment, cx: &mut Context<'_>) {
        let direction = finding.verdict.aim().map(|(direction, _)| direction);
        self.watch.facts.adopt(finding, completed, cx.now);
        if direction.is_some() && direction != self.direction {
            self.direction = direction;
            self.watch.verification = Verification::None;
            self.probes.turn();
            self.ended = None;
            for known in self.dependents.iter_mut() {
                known.turn();
            }
        }
        cx.report(Report::Found);
    }

    fn rules<'a>(&self, env: &Environment<'a>) -> Rules<'a> {
        let wants_proof = self.dependents.iter().any(DependentRecord::wants_proof);
        Rules {
            grace: env.settings.grace(env.config),
            fraction: env.config.node_lease_failure_fraction,
            pool_conditions: &env.settings.pool_conditions,
            renewed_after: wants_proof.then_some(self.watch.facts.marked_after),
        }
    }

    /// Verdict of the last probe; `None` if that was not complete, or there was none.
    pub fn verdict(&self) -> Option<Verdict> {
        let finding = self.finding().filter(|_| self.probes.failures() == 0)?;
        Some(finding.verdict)
    }

    /// True if a scale-up would find nothing to do; false while that is unknown.
    fn is_settled(&self, env: &Environment<'_>) -> bool {
        let only_held_down = env.options.restore_only_held_down.value;
        self.dependents.iter().all(|known| match known.state() {
            DependentState::Present(observed) => {
                scale_up(observed, Scope::All, only_held_down).is_none()
            }
            DependentState::Absent | DependentState::Unscalable(_) => true,
            DependentState::Unknown => false,
        })
    }

    /// Finding of the last complete probe.
    pub fn finding(&self) -> Option<&Arc<Finding>> {
        let evidence = self.watch.facts.evidence.as_ref()?;
        Some(&evidence.finding)
    }

    /// Leases that count by the nodes, in their order, as of [`Report::Found`]; empty while the
    /// nodes do not matter.
    pub fn counted_leases(&self) -> Vec<CountedLease<'_>> {
        self.finding().map_or_else(Vec::new, |finding| {
            let conditions = &self.settings.pool_conditions;
            let judge = &self.watch.judge;
            judge.counted_leases(finding.criteria, conditions)
        })
    }

    /// Failed probes in a row.
    pub fn failures(&self) -> u32 {
        self.probes.failures()
    }

    pub fn has_stood_down(&self) -> bool {
        self.phase.has_stood_down()
    }

    pub fn held_down(&self) -> impl Iterator<Item = &ResourceRef> {
        self.dependents()
            .filter(|dependent| dependent.is_held_down())
            .map(|dependent| &dependent.resource)
    }

    fn holds_down(&self) -> bool {
        self.dependents.iter().any(DependentRecord::is_held_down)
    }

    fn dependent_ids(&self) -> impl Iterator<Item = DependentId> + use<> {
        (0..self.dependents.len()).map(DependentId)
    }

    pub fn dependent(&self, id: DependentId) -> &DependentRecord {
        &self.dependents[id]
    }

    pub fn dependents(&self) -> impl Iterator<Item = &DependentRecord> {
        self.dependents.iter()
    }

    /// Direction of the scaling that this replica takes part in.
    pub fn scaling(&self) -> Option<Direction> {
        let scaling = self.phase.scaling().filter(|scaling| scaling.reported)?;
        Some(scaling.direction)
    }

    pub fn intended(&self) -> &[Intended] {
        &self.intended
    }

    /// Time of the next probe; while one is under way, of that one.
    pub fn due(&self) -> Moment {
        self.probes.due()
    }
}

#[cfg(test)]
mod tests;
