//! One shoot as a machine: inputs and the time in, actions and the next moment out. It decides when
//! to probe, what follows, and what is written when; whoever drives it probes, waits, writes and
//! reports, and decides nothing.
//!
//! ```text
//! leases, nodes, failures --> judge --> verdict --> up or down? --> scaling, level by level --> permit --> write
//! dependents, Cluster, pause, lead, answers ------------^------------------^---------------------^
//! ```
//!
//! Each decision is made on what is known at that moment, and a write once its permit is there:
//! nothing is decided before a wait and carried out after it.

mod interface;
mod markers;
mod owner;
mod permission;
mod probing;
mod standby;
mod verdicts;
mod writing;

use std::sync::Arc;

pub use self::interface::{
    Action, Environment, Input, Intended, Order, Owner, ProbeFailure, Report, Start, Verified,
};
use self::markers::Markers;
use self::owner::OwnerState;
use self::permission::Permission;
use self::probing::{ProbePhase, ProbeState, StartupJitter};
use self::standby::Verification;
use self::verdicts::Verdicts;
use self::writing::ScalingState;
pub use super::dependent::DependentRecord;
use super::dependent::Dependents;
use super::judgement::{CountedLease, Finding, Judge, Rules};
use super::lease::LeaseList;
use super::moment::{Moment, RequestTimes};
use super::plan::Direction;
use super::replicas::{DependentState, scale_up};
use super::scaled;
use super::schedule::Failures;
use super::verdict::{Scope, Verdict};
use crate::config::{Config, Dependent, DependentId, ResourceRef};
use crate::lifecycle::ShootSettings;

/// The machine. Each part has its own file; what an input leads to is read from [`Shoot::input`]
/// downwards.
#[derive(Clone, Debug)]
pub struct Shoot {
    start: Start,
    /// The config and the settings of the last input.
    config: Arc<Config>,
    settings: ShootSettings,
    judge: Judge,
    dependents: Dependents,
    probing: ProbeState,
    verdicts: Verdicts,
    markers: Markers,
    permission: Permission,
    owner: OwnerState,
    verification: Verification,
    scaling: ScalingState,
    /// When something happens by itself, probes apart.
    wake: Option<Moment>,
}

/// One input, and what follows from it.
struct Context<'a> {
    env: &'a Environment<'a>,
    now: Moment,
    actions: Vec<Action>,
    wake: Option<Moment>,
    reprobe_requested: bool,
    /// Which dependent others have changed, if that is why.
    changed: Option<DependentId>,
}

impl<'a> Context<'a> {
    fn new(env: &'a Environment<'a>, now: Moment) -> Self {
        Self {
            env,
            now,
            actions: Vec::new(),
            wake: None,
            reprobe_requested: false,
            changed: None,
        }
    }

    fn wake_at(&mut self, moment: Moment) {
        if moment > self.now {
            self.wake = Some(self.wake.map_or(moment, |wake| wake.min(moment)));
        }
    }

    fn request_reprobe(&mut self, changed: Option<DependentId>) {
        self.reprobe_requested = true;
        self.changed = changed.or(self.changed);
    }

    fn report(&mut self, report: Report) {
        self.actions.push(Action::Report(report));
    }
}

impl Shoot {
    pub fn new(start: Start, env: &Environment<'_>, now: Moment) -> Self {
        let mut shoot = Self {
            start,
            config: Arc::clone(env.config),
            settings: env.settings.clone(),
            judge: Judge::default(),
            dependents: env
                .config
                .dependents
                .iter()
                .map(DependentRecord::new)
                .collect(),
            probing: ProbeState::new(env.chance),
            verdicts: Verdicts::default(),
            markers: Markers::default(),
            permission: Permission::default(),
            owner: OwnerState::default(),
            verification: Verification::default(),
            scaling: ScalingState::default(),
            wake: None,
        };
        shoot.observe(env, now);
        shoot.probing.next = shoot.first_probe(env, now);
        shoot
    }

    pub fn input(&mut self, input: Input, env: &Environment<'_>, now: Moment) -> Vec<Action> {
        let mut cx = Context::new(env, now);
        let reloaded = self.reload(&mut cx);
        let settings_changed = self.settings != *env.settings;
        self.follow_owner(&mut cx);
        self.observe(env, now);
        self.update_permission(reloaded || settings_changed, &mut cx);
        self.apply(input, &mut cx);
        if reloaded {
            self.probing.jitter = StartupJitter::new(env.chance);
            self.probing
                .no_later_than(now + scaled(env.spread, env.chance));
        }
        if settings_changed {
            self.settings.clone_from(env.settings);
            self.probing.next = now;
        }
        self.act(&mut cx);
        self.probe_if_due(&mut cx);
        self.wake = cx.wake;
        cx.actions
    }

    fn apply(&mut self, input: Input, cx: &mut Context<'_>) {
        match input {
            Input::Woken => {}
            Input::Leases(times, leases) => self.on_leases(times, &leases, cx),
            Input::Nodes(nodes) => {
                self.judge.set_nodes(nodes);
                self.complete(self.judge.judge(&self.rules(cx.env)), cx);
            }
            Input::NodesConfirmed => {
                let finding = Finding {
                    verdict: Verdict::ScaleUpHeldDown,
                    judged_at: cx.now,
                    ..self.judge.judge(&self.rules(cx.env))
                };
                self.complete(finding, cx);
            }
            #[cfg(test)]
            Input::Found(finding) => self.complete(finding, cx),
            Input::Failed(failure) => self.on_failure(failure, cx),
            Input::Verified(verified) => self.on_verified(verified, cx),
            Input::Permitted(dependent) => self.on_permitted(dependent, cx),
            Input::Read(dependent, result) => self.on_read(dependent, result, cx),
            Input::Written(dependent, result) => self.on_written(dependent, result, cx),
        }
    }

    /// When [`Input::Woken`] is wanted, if nothing else happens before; none while a probe is under
    /// way and nothing else is due.
    pub fn next(&self) -> Option<Moment> {
        let probes = self.probing.phase == ProbePhase::Idle && !self.owner.stood_down;
        let probe = probes.then(|| self.due());
        probe.into_iter().chain(self.wake).min()
    }

    /// Applies a changed config: what it names as before stays known. True if it is another one.
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

    /// Applies how the dependents are.
    fn observe(&mut self, env: &Environment<'_>, now: Moment) {
        if let Some(paused) = env.paused {
            self.permission.was_paused = paused;
        }
        for (known, state) in self.dependents.iter_mut().zip(&env.dependents) {
            if known.observe(state.clone(), now) {
                self.markers.appeared(self.probing.completed, now);
            }
        }
    }

    fn on_leases(&mut self, times: RequestTimes, leases: &LeaseList, cx: &mut Context<'_>) {
        let rules = self.rules(cx.env);
        self.judge.observe(times, leases.iter(), rules.grace);
        let Some(machines) = &cx.env.machines else {
            cx.report(Report::MachinesUnknown);
            return self.on_failure(ProbeFailure::Other, cx);
        };
        self.judge.set_machines(Arc::clone(machines));
        let good_since = self.nodes_good_since(cx);
        if self
            .judge
            .wants_nodes(&rules, self.is_settled(cx.env), good_since)
        {
            self.probing.phase = ProbePhase::Nodes;
            cx.actions.push(Action::ListNodes);
        } else {
            self.complete(self.judge.judge(&rules), cx);
        }
    }

    fn complete(&mut self, finding: Finding, cx: &mut Context<'_>) {
        self.probing.complete(cx.now);
        self.adopt(finding, cx);
        self.probing.next = self.scheduled(None, cx);
    }

    fn on_failure(&mut self, failure: ProbeFailure, cx: &mut Context<'_>) {
        if failure != ProbeFailure::Other {
            self.judge.note_unanswered();
        }
        self.probing.fail(failure, cx.now);
        let failures = Failures {
            in_a_row: self.probing.failures,
            urgent: self.verdicts.last.is_none(),
        };
        self.probing.next = self.scheduled(Some(failures), cx);
    }

    fn adopt(&mut self, finding: Finding, cx: &mut Context<'_>) {
        if self.verdicts.adopt(finding, cx.now) {
            self.verification = Verification::None;
            for known in self.dependents.iter_mut() {
                known.written_as_standby = None;
                known.forget_failures();
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
            renewed_after: wants_proof.then_some(self.markers.renewed_after),
        }
    }

    /// What the last probe said; none when it was not complete, or there was none.
    pub fn verdict(&self) -> Option<Verdict> {
        let finding = self.finding().filter(|_| self.probing.failures == 0)?;
        Some(finding.verdict)
    }

    /// Whether a scale-up would find nothing to do; false when that is not known.
    fn is_settled(&self, env: &Environment<'_>) -> bool {
        let only_held_down = env.options.restore_only_held_down.value;
        self.dependents.iter().all(|known| match known.state() {
            DependentState::Present(observed) => {
                scale_up(observed, Scope::All, only_held_down).is_none()
            }
            DependentState::Absent | DependentState::NoSuchKind => true,
            DependentState::Unknown => false,
        })
    }

    pub fn finding(&self) -> Option<&Arc<Finding>> {
        self.verdicts.last.as_ref()
    }

    /// Leases that count by the nodes, in their order, as of [`Report::Found`]; empty while the
    /// nodes do not matter.
    pub fn counted_leases(&self) -> Vec<CountedLease<'_>> {
        self.finding().map_or_else(Vec::new, |finding| {
            let conditions = &self.settings.pool_conditions;
            self.judge.counted_leases(finding.criteria, conditions)
        })
    }

    pub fn failures(&self) -> u32 {
        self.probing.failures
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

    /// The direction of the scaling that this replica takes part in.
    pub fn scaling(&self) -> Option<Direction> {
        let scaling = self.scaling.current.filter(|scaling| scaling.reported)?;
        Some(scaling.direction)
    }

    pub fn intended(&self) -> &[Intended] {
        &self.scaling.intended
    }

    /// When the next probe is due; while one is under way, when that was.
    pub fn due(&self) -> Moment {
        self.probing.due()
    }
}

#[cfg(test)]
mod tests;
