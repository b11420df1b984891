//! The machine of one shoot, driven through hours in no time: a shoot's API server and nodes, a
//! seed that carries out what the machine says, and a record of all that it said.
//!
//! Three nodes renew their leases every 10 s, a tenth of a second apart. When they fall silent at
//! 105 s, two of three leases have expired at 130.1 s, which is an outage, and the ordering
//! deadline is 137 s.

mod attacked;
mod begun_restore;
mod blips;
mod evidence;
mod freshness;
mod known;
mod old_evidence;
mod owner;
mod permits;
mod proof;
mod recovery;
mod silence;
mod standby;
mod start;
mod state;
mod suspended;
mod taking_turns;
mod unscalable;
mod vouched;

use std::collections::VecDeque;
use std::time::Duration;

use chrono::TimeDelta;

use super::*;
use crate::lease::{LeaseRecord, LeaseUid};
use crate::refusal::Refusal;
use crate::replicas::{Marks, Observed};
use crate::tests::scene::{OwnedEnvironment, at, dependent, env, running, times, wall};
use crate::verdict::{BackedNodes, NodeCondition, NodeRecord, NodeTraits};

/// The places of the two dependents: machine-controller-manager goes down first,
/// kube-controller-manager comes up first.
const MCM: DependentId = DependentId(0);
const KCM: DependentId = DependentId(1);

/// When the nodes fall silent, when that is an outage, and until when levels wait for each other.
const SILENT: f64 = 105.0;
const OUTAGE: f64 = 130.101;
const DEADLINE: f64 = 137.0;
/// How long a standby leaves the first write to the leader.
const PATIENCE: f64 = 1.5;

/// How the shoot's API server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    Answers,
    Fails(ProbeFailure),
    /// Not until somebody answers for it.
    Hangs,
    /// It is not asked: a person vouches for the nodes.
    Vouched,
}

/// A shoot's machine and its world. Unless a test says otherwise, whatever the machine asks for is
/// done at once.
struct Rig {
    shoot: Shoot,
    env: OwnedEnvironment,
    now: Moment,
    api: Api,
    /// The interval of the renewals, what the leases say of their duration, and between which
    /// moments there are no renewals.
    beat: f64,
    lease_seconds: i32,
    silences: Vec<(f64, f64)>,
    /// When all of them renewed once more, besides their beats.
    renewed_at: Option<f64>,
    nodes: usize,
    /// So many of them are not silent.
    spared: usize,
    machines: Arc<BackedNodes>,
    /// What is read of the Cluster, the namespaces and the Machines; as the view has it unless
    /// something else is set.
    verified: Option<Option<Verified>>,
    /// Whether permits and answers to writes are given by the test.
    holds_permits: bool,
    holds_writes: bool,
    /// The dependent whose writes are refused.
    refused: Option<DependentId>,
    /// Whether pods outlive their replicas.
    pods_linger: bool,
    /// Whether the view shows nothing of what this replica writes.
    view_lags: bool,
    version: u64,
    /// How far the nodes' clocks are ahead of ours.
    ahead: f64,
    /// The condition of the nodes, if that excludes them.
    excluded: Option<NodeCondition<&'static str>>,
    log: Vec<(f64, Action)>,
    verdicts: Vec<(f64, Verdict)>,
}

fn seconds(moment: Moment) -> f64 {
    (moment.elapsed_since_start().as_seconds_f64() * 1000.0).round() / 1000.0
}

fn machines(nodes: usize) -> Arc<BackedNodes> {
    let names: Vec<_> = (0..nodes).map(node).collect();
    Arc::new(names.iter().map(|name| Some(name.as_str())).collect())
}

fn node(number: usize) -> String {
    format!("node-{number}")
}

/// What a resource is that is held down, and whose pods are gone.
fn held(memory: &str) -> Observed {
    let marks = Marks {
        replicas: Some(memory.into()),
        held_down: true,
        ignored: false,
    };
    Observed {
        replicas: 0,
        ready: 0,
        marks,
        ..running(1)
    }
}

fn two() -> OwnedEnvironment {
    let mut env = env([
        dependent("machine-controller-manager", 1, 0),
        dependent("kube-controller-manager", 0, 1),
    ]);
    env.chance = 0.0;
    env
}

impl Rig {
    /// A shoot in operation that a leader begins to probe at the start.
    fn leader() -> Self {
        Self::with(two())
    }

    /// The same with a replica that does not lead.
    fn standby() -> Self {
        Self::with(OwnedEnvironment {
            leads: false,
            ..two()
        })
    }

    fn with(env: OwnedEnvironment) -> Self {
        Self::starting(
            Start {
                eligible: Moment::START,
                in_operation: true,
            },
            env,
        )
    }

    fn starting(start: Start, env: OwnedEnvironment) -> Self {
        Self {
            shoot: Shoot::new(start, &env.env(), Moment::START),
            env,
            now: Moment::START,
            api: Api::Answers,
            beat: 10.0,
            lease_seconds: 40,
            silences: vec![],
            renewed_at: None,
            nodes: 3,
            spared: 0,
            machines: machines(3),
            verified: None,
            holds_permits: false,
            holds_writes: false,
            refused: None,
            pods_linger: false,
            view_lags: false,
            version: 1,
            ahead: 0.0,
            excluded: None,
            log: vec![],
            verdicts: vec![],
        }
    }

    /// The same, with nodes that fall silent at [`SILENT`].
    fn in_outage(mut self) -> Self {
        self.silent(SILENT);
        self
    }

    /// From then on no lease is renewed.
    fn silent(&mut self, from: f64) {
        self.silences.push((from, f64::MAX));
    }

    /// From now on leases are renewed again, at their old beats.
    fn renewed(&mut self) {
        let now = seconds(self.now);
        if let Some(silence) = self.silences.last_mut() {
            silence.1 = now;
        }
    }

    /// The same, and all of them renew at once.
    fn renewed_at_once(&mut self) {
        self.renewed();
        self.renewed_once();
    }

    /// All of them renew now, and are silent as before.
    fn renewed_once(&mut self) {
        self.renewed_at = Some(seconds(self.now));
    }

    /// When a node has renewed its lease last.
    fn stamp(&self, number: usize) -> f64 {
        let phase = number as f64 / 10.0;
        let mut stamp = ((seconds(self.now) - phase) / self.beat).floor() * self.beat + phase;
        while number >= self.spared
            && self
                .silences
                .iter()
                .any(|silence| silence.0 <= stamp && stamp < silence.1)
        {
            stamp -= self.beat;
        }
        self.renewed_at.map_or(stamp, |renewed| stamp.max(renewed))
    }

    /// Lets time pass.
    fn run(&mut self, until: f64) {
        let mut idle = 0;
        loop {
            self.input(Input::Woken);
            let Some(next) = self
                .shoot
                .next()
                .map(|(next, _)| next)
                .filter(|next| *next <= at(until))
            else {
                break;
            };
            idle = if next > self.now { 0 } else { idle + 1 };
            assert!(
                idle < 100,
                "a hot loop at {:?}: {:?}",
                self.now,
                &self.log[self.log.len().saturating_sub(10)..]
            );
            self.now = next.max(self.now);
        }
        self.now = self.now.max(at(until));
        self.input(Input::Woken);
    }

    fn input(&mut self, input: Input) {
        let actions = self.take(input);
        self.follow(actions);
    }

    /// The shoot names other conditions for a pool that has no nodes.
    fn settings_changed(&mut self) {
        let pools = &mut self.env.settings.pool_conditions;
        if pools.remove("empty").is_none() {
            pools.insert("empty".into(), vec![]);
        }
        self.input(Input::Woken);
    }

    fn reloaded(&mut self) {
        self.env.config = Arc::new(Config::clone(&self.env.config));
        self.input(Input::Woken);
    }

    fn follow(&mut self, actions: Vec<Action>) {
        let mut pending: VecDeque<_> = actions.into();
        while let Some(action) = pending.pop_front() {
            pending.extend(self.carry_out(action));
        }
    }

    fn take(&mut self, input: Input) -> Vec<Action> {
        let env = Environment {
            machines: Some(Arc::clone(&self.machines)),
            ..self.env.env()
        };
        let actions = self.shoot.input(input, &env, self.now);
        let now = seconds(self.now);
        for action in &actions {
            if *action == Action::Report(Report::Found) {
                self.verdicts
                    .push((now, self.shoot.finding().expect("found").verdict));
            }
            self.log.push((now, action.clone()));
        }
        actions
    }

    fn carry_out(&mut self, action: Action) -> Vec<Action> {
        match action {
            Action::ListLeases { .. } => match self.api {
                Api::Answers => {
                    // A request is sent after it was decided on.
                    self.now = self.now + TimeDelta::microseconds(1);
                    self.answer(times(self.now.elapsed_since_start().as_seconds_f64()))
                }
                Api::Fails(failure) => self.take(Input::Failed(failure)),
                Api::Hangs => vec![],
                Api::Vouched => {
                    self.now = self.now + TimeDelta::microseconds(1);
                    self.take(Input::NodesConfirmed)
                }
            },
            Action::ListNodes => {
                let record = |number| {
                    let mut traits = NodeTraits::default();
                    self.excluded
                        .iter()
                        .for_each(|condition| traits.note_condition(condition.clone()));
                    NodeRecord::new(&node(number), traits)
                };
                let nodes = (0..self.nodes).map(record).collect();
                self.take(Input::Nodes(nodes))
            }
            Action::Verify => {
                let as_seen = Verified {
                    is_ours: true,
                    is_paused: false,
                    standby_protects: self.env.options.standby_protects.value,
                    machines: Arc::clone(&self.machines),
                };
                let verified = self.verified.clone().unwrap_or(Some(as_seen));
                self.take(Input::Verified(verified))
            }
            Action::AcquirePermit(at, _) if !self.holds_permits => self.take(Input::Permitted(at)),
            Action::Read(at, _) => {
                let seen = self.env.dependents[at.0].clone();
                self.take(Input::Read(at, Ok(seen)))
            }
            Action::Write(order) if self.refused == Some(order.dependent) => {
                self.take(Input::Written(order.dependent, Err(Refusal::NotLeading)))
            }
            Action::Write(order) if !self.holds_writes => self.write(&order),
            _ => vec![],
        }
    }

    /// Answers a probe with the leases as they are now.
    fn answer(&mut self, times: RequestTimes) -> Vec<Action> {
        let mut leases = LeaseList::default();
        for number in 0..self.nodes {
            let renew_time = Some(wall(self.stamp(number) + self.ahead));
            leases.push(LeaseRecord {
                name: &node(number),
                uid: LeaseUid::default(),
                renew_time,
                duration_seconds: Some(self.lease_seconds),
            });
        }
        self.take(Input::Leases(times, leases))
    }

    /// Makes a write, and lets the view show it after its answer.
    fn write(&mut self, order: &Order) -> Vec<Action> {
        self.version += 1;
        let mut after = order.change.after(self.version.to_string());
        if !self.pods_linger {
            after.ready = after.replicas;
        }
        let after = Arc::new(after);
        let actions = self.take(Input::Written(order.dependent, Ok(Arc::clone(&after))));
        if !self.view_lags {
            self.env.dependents[order.dependent.0] = DependentState::Present(after);
        }
        actions
    }

    /// How a dependent is by the view.
    fn seen(&self, at: DependentId) -> Observed {
        match &self.env.dependents[at.0] {
            DependentState::Present(observed) => Observed::clone(observed),
            other => unreachable!("{other:?}"),
        }
    }

    /// Others write a dependent now, and the view shows it at once.
    fn others(&mut self, at: DependentId, change: impl FnOnce(&mut Observed)) {
        self.show(at, change);
        self.input(Input::Woken);
    }

    /// The same, but the machine does not know yet.
    fn show(&mut self, at: DependentId, change: impl FnOnce(&mut Observed)) {
        self.version += 1;
        let mut observed = self.seen(at);
        change(&mut observed);
        observed.resource_version = self.version.to_string();
        self.env.dependents[at.0] = DependentState::Present(Arc::new(observed));
    }

    /// All that was said of a kind, with the moments.
    fn said<T>(&self, which: impl Fn(&Action) -> Option<T>) -> Vec<(f64, T)> {
        self.log
            .iter()
            .filter_map(|(when, action)| Some((*when, which(action)?)))
            .collect()
    }

    /// The orders that were given, by their moment, dependent, and replicas.
    fn writes(&self) -> Vec<(f64, DependentId, Option<i32>)> {
        let order = |action: &Action| match action {
            Action::Write(order) => Some((order.dependent, order.change.write.replicas)),
            _ => None,
        };
        self.said(order)
            .into_iter()
            .map(|(when, (at, replicas))| (when, at, replicas))
            .collect()
    }

    fn orders(&self) -> Vec<Order> {
        let order = |action: &Action| match action {
            Action::Write(order) => Some(order.clone()),
            _ => None,
        };
        self.said(order)
            .into_iter()
            .map(|(_, order)| order)
            .collect()
    }

    /// When such an action was asked for, from a moment on.
    fn when(&self, wanted: &Action, from: f64) -> Vec<f64> {
        self.log
            .iter()
            .filter(|(when, action)| *when >= from && action == wanted)
            .map(|(when, _)| *when)
            .collect()
    }

    fn probes(&self, from: f64) -> Vec<f64> {
        let probes = self.said(|action| matches!(action, Action::ListLeases { .. }).then_some(()));
        probes
            .into_iter()
            .map(|(when, ())| when)
            .filter(|when| *when >= from)
            .collect()
    }

    /// What the last probe said.
    fn verdict(&self) -> Verdict {
        self.verdicts.last().expect("a probe").1
    }

    fn reported(&self, report: &Report) -> bool {
        !self.when(&Action::Report(report.clone()), 0.0).is_empty()
    }
}

/// The longest time between two of these moments.
fn longest_gap(moments: &[f64]) -> f64 {
    moments
        .windows(2)
        .map(|two| two[1] - two[0])
        .fold(0.0, f64::max)
}
