//! One shoot as a machine: inputs and the time in, actions and the next moment out. It decides when
//! to probe, what follows, and what is written when; whoever drives it probes, waits, writes and
//! reports, and decides nothing.
//!
//! ```text
//! leases, nodes, failures --> judge --> finding --> which way? --> scaling, level by level --> ask for a permit --> write
//! dependents, Cluster, pause, lead, answers -----------^------------------^--------------------------^
//! ```
//!
//! Each decision is made on what is known at that moment, and a write once its permit is there:
//! nothing is decided before a wait and carried out after it.

mod act;
mod evidence;
mod interface;
mod owner;
mod schedule;
mod standby;

use std::sync::Arc;

use chrono::TimeDelta;

pub use self::interface::{
    Action, Environment, Input, Intended, Order, ProbeFailure, Reason, Report, Start, Verified,
};
use self::schedule::{ReprobeRequests, StartupJitter};
use self::standby::Verification;
use super::judgement::{Finding, Judge, Rules};
use super::known::Known;
use super::lease::LeaseList;
use super::moment::{Moment, RequestTimes};
use super::plan::{ByDirection, Direction};
use super::replicas::{DependentState, scale_up};
use super::scaled;
use super::scaling::{Scaling, Stage};
use super::schedule::Failure;
use super::verdict::{Scope, Verdict};
use crate::config::{Config, ResourceRef};
use crate::lifecycle::ShootSettings;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Probing {
    #[default]
    Idle,
    Leases,
    Nodes,
}

/// How long to wait, from when this process first saw that a shoot may be probed, to learn whether
/// it is paused (decisions, "Settings without a config file").
const PAUSE_READ: TimeDelta = TimeDelta::seconds(2);

#[derive(Debug, Default, Clone)]
pub struct Shoot {
    start: Start,
    /// The config and settings of the last input.
    config: Option<Arc<Config>>,
    settings: ShootSettings,
    judge: Judge,
    resources: Vec<ResourceRef>,
    known: Vec<Known>,

    probing: Probing,
    next_probe: Moment,
    reprobes: ReprobeRequests,
    jitter: StartupJitter,
    failures: u32,
    /// When the last probe began, and when the last complete one was over.
    probed_at: Moment,
    answered_at: Moment,
    /// Until when the API server asked us to stay away (429); none after a complete probe.
    throttled_until: Option<Moment>,
    finding: Option<Arc<Finding>>,

    /// Since when every complete probe said "up", and how many there were.
    up_since: Option<(Moment, u32)>,
    /// Which verdict was the last that was no hold.
    last_direction: Option<Direction>,
    /// When the verdict last turned to "down", and the ordering deadline of that moment.
    down_since: Option<(Moment, Option<Moment>)>,
    /// Whether it was paused when that was known last.
    was_paused: bool,
    /// Since when nothing but its turn has kept this replica from writing, without interruption
    /// (D-56).
    free_since: ByDirection<Option<Moment>>,
    /// Since when leadership, config and settings are the same.
    same_since: Moment,
    led: bool,
    /// When the last complete probe was over before the newest marker was seen, ours included:
    /// renewals must be seen later (D-59).
    marked_after: Moment,
    /// When a dependent was last held down here.
    protected_at: Moment,
    /// Whether the shoot is lost to another seed, as far as is known here: it is neither probed
    /// nor, of its own verdict, written.
    stood_down: bool,
    /// Whether it was, so that restores wait for initialDelay.
    returned: bool,
    /// In which direction the owner record prevents a write.
    prevented: Option<Direction>,
    /// Since when a leader that judges alike would protect: in an outage, with no pause, and
    /// initialDelay over.
    leader_may_protect_since: Option<Moment>,
    /// When a marker that others set was last seen for the first time.
    marker_seen: Option<Moment>,
    verification: Verification,

    scaling: Option<Scaling>,
    scalings: u64,
    /// How the last scaling ended. The next one rests on a later probe.
    ended: Option<Ended>,
    failed_scalings: u32,
    intended: Vec<Intended>,
    /// When something happens by itself, probes apart.
    wake: Option<Moment>,
}

#[derive(Clone, Copy, Debug, Hash)]
struct Ended {
    at: Moment,
    /// Whether all of it could be done.
    in_full: bool,
}

struct Context<'a> {
    env: &'a Environment<'a>,
    now: Moment,
    actions: Vec<Action>,
    wake: Option<Moment>,
    reprobe_requested: bool,
    /// Which dependent others have changed, if that is why.
    changed: Option<usize>,
}

impl Context<'_> {
    fn wake_at(&mut self, moment: Moment) {
        if moment > self.now {
            self.wake = Some(self.wake.map_or(moment, |wake| wake.min(moment)));
        }
    }

    fn request_reprobe(&mut self, changed: Option<usize>) {
        self.reprobe_requested = true;
        self.changed = changed.or(self.changed);
    }

    fn report(&mut self, report: Report) {
        self.actions.push(Action::Report(report));
    }
}

impl Shoot {
    pub fn new(start: Start, env: &Environment<'_>, now: Moment) -> Self {
        let dependents = &env.config.dependents;
        let mut shoot = Self {
            start,
            config: Some(Arc::clone(env.config)),
            settings: env.settings.clone(),
            resources: dependents
                .iter()
                .map(|dependent| dependent.resource.clone())
                .collect(),
            known: vec![Known::default(); dependents.len()],
            jitter: StartupJitter::new(env.chance),
            ..Self::default()
        };
        shoot.observe(env, now);
        shoot.next_probe = shoot.first_probe(env, now);
        shoot
    }

    pub fn input(&mut self, input: Input, env: &Environment<'_>, now: Moment) -> Vec<Action> {
        let mut cx = Context {
            env,
            now,
            actions: Vec::new(),
            wake: None,
            reprobe_requested: false,
            changed: None,
        };
        let reloaded = self
            .config
            .replace(Arc::clone(env.config))
            .is_none_or(|before| !Arc::ptr_eq(&before, env.config));
        let settings_changed = self.settings != *env.settings;
        if reloaded {
            self.reload(&mut cx);
        }
        self.follow_owner(&mut cx);
        self.observe(env, now);
        self.note_freedom(reloaded || settings_changed, &mut cx);
        if reloaded {
            self.jitter = StartupJitter::new(env.chance);
            self.next_probe = self.next_probe.min(now + scaled(env.spread, env.chance));
        }
        if settings_changed {
            self.settings.clone_from(env.settings);
            self.next_probe = now;
        }
        match input {
            Input::Woken => {}
            Input::Leases(times, leases) => self.on_leases(times, &leases, &mut cx),
            Input::Nodes(nodes) => {
                self.judge.set_nodes(nodes);
                self.conclude(&mut cx);
            }
            Input::Vouched => {
                let found = self.judge.judge(&self.rules(env));
                self.complete(
                    Finding {
                        verdict: Verdict::ScaleUpHeldDown,
                        judged_at: now,
                        ..found
                    },
                    &mut cx,
                );
            }
            #[cfg(test)]
            Input::Found(finding) => self.complete(finding, &mut cx),
            Input::Failed(failure) => self.on_failure(failure, &mut cx),
            Input::Verified(verified) => self.on_verified(verified, &mut cx),
            Input::Permitted(dependent) => self.on_permitted(dependent, &mut cx),
            Input::Read(dependent, result) => self.on_read(dependent, result, &mut cx),
            Input::Written(dependent, result) => self.on_written(dependent, result, &mut cx),
        }
        self.update_leader_grace(&cx);
        self.act(&mut cx);
        self.probe_if_due(&mut cx);
        self.wake = cx.wake;
        cx.actions
    }

    /// When [`Input::Woken`] is wanted, if nothing else happens before; none while a probe is under
    /// way and nothing else is due.
    pub fn next(&self) -> Option<Moment> {
        let probe = (self.probing == Probing::Idle && !self.stood_down).then(|| self.due());
        probe.into_iter().chain(self.wake).min()
    }

    /// Takes in how the dependents are. A marker that appears while a write of this replica is
    /// under way is most likely its own: a watch may be faster than an answer.
    fn observe(&mut self, env: &Environment<'_>, now: Moment) {
        self.was_paused = env.paused.unwrap_or(self.was_paused);
        for (at, (known, state)) in self.known.iter_mut().zip(&env.dependents).enumerate() {
            let step = self
                .scaling
                .as_ref()
                .and_then(|scaling| scaling.steps.get(at));
            let writes = step.is_some_and(|step| matches!(step.stage, Stage::Writing(..)));
            if known.observe(state.clone(), now) {
                self.marked_after = self.answered_at;
                self.marker_seen = if writes { self.marker_seen } else { Some(now) };
            }
        }
    }

    /// Notes a marker that others have set.
    fn note_marker(&mut self, now: Moment) {
        (self.marked_after, self.marker_seen) = (self.answered_at, Some(now));
    }

    /// Applies a changed config: what it names as before stays known.
    fn reload(&mut self, cx: &mut Context<'_>) {
        let resources: Vec<_> = cx
            .env
            .config
            .dependents
            .iter()
            .map(|dependent| dependent.resource.clone())
            .collect();
        if resources == self.resources {
            return;
        }
        self.drop_scaling(cx);
        let before =
            |resource: &ResourceRef| self.resources.iter().position(|known| known == resource);
        let known =
            |resource| before(resource).map_or_else(Known::default, |at| self.known[at].clone());
        self.known = resources.iter().map(known).collect();
        self.resources = resources;
    }

    fn on_leases(&mut self, times: RequestTimes, leases: &LeaseList, cx: &mut Context<'_>) {
        let rules = self.rules(cx.env);
        self.judge.observe(times, leases.iter(), rules.grace);
        let Some(machines) = &cx.env.machines else {
            cx.report(Report::MachinesUnknown);
            return self.on_failure(ProbeFailure::Other, cx);
        };
        self.judge.set_machines(Arc::clone(machines));
        if self
            .judge
            .wants_nodes(&rules, self.is_settled(cx.env), self.nodes_good_since(cx))
        {
            self.probing = Probing::Nodes;
            cx.actions.push(Action::ListNodes);
        } else {
            self.conclude(cx);
        }
    }

    fn conclude(&mut self, cx: &mut Context<'_>) {
        self.complete(self.judge.judge(&self.rules(cx.env)), cx);
    }

    fn complete(&mut self, finding: Finding, cx: &mut Context<'_>) {
        self.probing = Probing::Idle;
        (self.failures, self.throttled_until, self.answered_at) = (0, None, cx.now);
        self.jitter.probe_completed();
        self.adopt(finding, cx);
        self.next_probe = self.scheduled(None, cx);
    }

    fn on_failure(&mut self, failure: ProbeFailure, cx: &mut Context<'_>) {
        self.probing = Probing::Idle;
        if matches!(
            failure,
            ProbeFailure::Unanswered | ProbeFailure::Throttled(_)
        ) {
            self.judge.note_unanswered();
        }
        self.failures = self.failures.saturating_add(1);
        self.throttled_until = match failure {
            ProbeFailure::Throttled(retry_after) => {
                Some(cx.now + super::schedule::rest(retry_after))
            }
            _ => None,
        };
        self.next_probe = self.scheduled(
            Some(Failure {
                in_a_row: self.failures,
                urgent: self.finding.is_none(),
            }),
            cx,
        );
    }

    fn adopt(&mut self, mut finding: Finding, cx: &mut Context<'_>) {
        // A probe that was not answered leaves for a moment undecided what is expired (D-54): no
        // zone is back for that.
        if finding.tally.undecided > 0
            && finding.lost_zones.is_empty()
            && finding.verdict != Verdict::ScaleDown
            && let Some(last) = &self.finding
        {
            finding.lost_zones.clone_from(&last.lost_zones);
        }
        let direction = finding.verdict.aim().map(|(direction, _)| direction);
        self.up_since = (direction == Some(Direction::Up)).then(|| {
            let (since, probes) = self.up_since.unwrap_or((finding.judged_at, 0));
            (since, probes.saturating_add(1))
        });
        if direction.is_some() && direction != self.last_direction {
            self.last_direction = direction;
            self.known
                .iter_mut()
                .for_each(|known| known.stood_in = None);
            self.verification = Verification::None;
            self.down_since =
                (direction == Some(Direction::Down)).then_some((cx.now, finding.ordering_deadline));
        }
        self.finding = Some(Arc::new(finding));
        cx.report(Report::Found);
    }

    fn rules(&self, env: &Environment<'_>) -> Rules {
        let Environment {
            config, settings, ..
        } = env;
        Rules {
            grace: settings.grace(config),
            fraction: config.node_lease_failure_fraction,
            pool_conditions: settings.pool_conditions.clone(),
            renewed_after: self
                .known
                .iter()
                .any(Known::wants_proof)
                .then_some(self.marked_after),
        }
    }

    /// What the last probe said; none when it was not complete, or there was none.
    pub fn verdict(&self) -> Option<Verdict> {
        self.finding
            .as_ref()
            .filter(|_| self.failures == 0)
            .map(|finding| finding.verdict)
    }

    /// Whether a scale-up would find nothing to do; false when that is not known.
    fn is_settled(&self, env: &Environment<'_>) -> bool {
        self.known.iter().all(|known| match known.state() {
            DependentState::Present(observed) => scale_up(
                observed,
                Scope::All,
                env.options.restore_only_held_down.value,
            )
            .is_none(),
            DependentState::Absent | DependentState::NoSuchKind => true,
            DependentState::Unknown => false,
        })
    }

    pub fn finding(&self) -> Option<&Arc<Finding>> {
        self.finding.as_ref()
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    pub fn held_down(&self) -> impl Iterator<Item = &ResourceRef> {
        self.dependents()
            .filter(|(_, known)| known.is_held_down())
            .map(|(resource, _)| resource)
    }

    pub fn dependents(&self) -> impl Iterator<Item = (&ResourceRef, &Known)> {
        self.resources.iter().zip(&self.known)
    }

    pub fn known(&self) -> &[Known] {
        &self.known
    }

    pub fn scaling(&self) -> Option<Direction> {
        self.scaling.as_ref().map(|scaling| scaling.direction)
    }

    pub fn intended(&self) -> &[Intended] {
        &self.intended
    }

    /// When the next probe is due; while one is under way, when that was. An API server that asks
    /// to be left alone is.
    pub fn due(&self) -> Moment {
        let due = self
            .reprobes
            .due
            .map_or(self.next_probe, |reprobe| reprobe.min(self.next_probe));
        self.throttled_until.map_or(due, |until| until.max(due))
    }
}

#[cfg(test)]
mod tests;
