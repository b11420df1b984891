//! A life: its events in their order, two replicas of the machine, and what answers them.
//!
//! ```text
//!  events --> replica's machine --> actions --> answers, each in its time --> events
//!    ^                                |
//!    |                                v
//!  mishaps, nodes, objects          oracle
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::memory::{Known, OracleMemory};
use super::nodes::{Nodes, any_contains};
use super::plan::{Leadership, Plan};
use super::views::state;
use super::{Seconds, at};
use crate::config::{Config, Dependent, DependentId};
use crate::moment::RequestTimes;
use crate::options::ResolvedOptions;
use crate::plan::Direction;
use crate::refusal::Refusal;
use crate::replicas::{DependentState, Observed, PlannedWrite};
use crate::shoot::{Action, Answer, Environment, Input, Order, ProbeFailure, Report, Shoot, Start};
use crate::tests::scene::{dependent, env, running, wall};

/// Time that a replica takes at its start to read the shoot's namespace.
const NAMESPACE_READ: (Seconds, Seconds) = (0.01, 1.5);
/// Leases that take longer are not waited for before the nodes are listed too.
const NODES_BESIDE: Seconds = 0.1;
/// The longest that a standby waits for the seed's own word.
const READ_LIMIT: Seconds = 1.0;
/// The most events a second, on average, beside those of 100 s at the start.
const MOST_EVENTS: u64 = 1000;
pub const NAMES: [&str; 5] = ["kcm", "mcm", "ca", "dd", "ee"];

/// A request that a replica waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaited {
    Probe,
    Permit(Direction),
    Dependent(DependentId),
}

/// A request of a replica. It is answered only if it is still waited for.
#[derive(Clone, Copy, Debug)]
struct Request {
    by: usize,
    awaited: Awaited,
    number: u64,
}

type Event = Box<dyn FnOnce(&mut Life) + Send>;

pub struct LifeReplica {
    pub machine: Option<Shoot>,
    pub env: Environment,
    /// Its view of each object; `None` while it is blind to the seed.
    pub view: Option<Vec<DependentState>>,
    /// Time in which its views show nothing new, and nobody has noticed.
    pub stale: Range<Seconds>,
    pub awaits: HashMap<Awaited, u64>,
    pub suspended_until: Seconds,
    pub memory: OracleMemory,
}

/// A write that was made: when, by which replica, of which object, and its replicas then.
type Made = (Seconds, usize, usize, Option<i32>);

pub struct Life {
    pub plan: Plan,
    /// Draws of mishaps are apart from those of answers, so that the same happens to whatever code
    /// is tested.
    pub mishaps: StdRng,
    pub answers: StdRng,
    pub t: Seconds,
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
    pub replicas: [LifeReplica; 2],
    /// The dependents' resources, and the replicas that each has to come back to.
    pub objects: Vec<Option<Observed>>,
    pub expected: [i32; NAMES.len()],
    /// True of what somebody took to 0, for reasons of their own.
    pub taken_off: [bool; NAMES.len()],
    pub version: u64,
    pub nodes: Nodes,
    pub config: Arc<Config>,
    /// The seed's own word on the shoot, and its beginning.
    pub paused: (bool, Seconds),
    pub is_ours: (bool, Seconds),
    pub leader_renewed: Seconds,
    // What it comes to.
    pub made: Vec<Made>,
    pub conflicts: usize,
    pub probes: usize,
    /// Number of lists of nodes.
    pub lists: usize,
    pub log: Vec<String>,
    pub wrong: Vec<String>,
    /// Writes to 0 of a scaling that is held, though most leases are valid.
    pub in_a_hold: usize,
}

fn dependents(plan: &Plan, rng: &mut StdRng) -> Vec<Dependent> {
    let mut dependents = vec![
        dependent("kcm", 0, 1),
        dependent("mcm", 1, 0),
        dependent("ca", 2, 0),
    ];
    dependents[1].scale_up.initial_delay = Duration::from_secs(30);
    dependents[2].optional = true;
    if plan.many_dependents {
        let mut level = || rng.random_range(-1..3);
        dependents = NAMES.map(|name| dependent(name, level(), level())).into();
        for one in &mut dependents {
            let mut seconds = |of: &[u64]| Duration::from_secs(of[rng.random_range(0..of.len())]);
            one.scale_up.initial_delay = seconds(&[0, 0, 5, 30]);
            one.scale_up.timeout = seconds(&[1, 5, 30]);
            one.scale_down.timeout = seconds(&[1, 5, 30]);
            one.optional = rng.random();
        }
    }
    for one in &mut dependents {
        one.scale_down.initial_delay = Duration::from_secs_f64(plan.down_delay);
    }
    dependents
}

fn environment(plan: &Plan, rng: &mut StdRng) -> Environment {
    let mut env = env(dependents(plan, rng));
    let config = Arc::make_mut(&mut env.config);
    config.probe_interval = Duration::from_secs_f64(plan.interval);
    config.initial_delay = Duration::from_secs_f64(plan.initial_delay);
    config.node_monitor_grace = Duration::from_secs_f64(plan.grace);
    config.node_lease_failure_fraction = plan.fraction;
    config.restore_only_held_down = plan.only_held_down;
    config.scale_up_stabilization = Duration::from_secs_f64(plan.stabilization);
    env.options = ResolvedOptions::resolve(&env.config, None, None);
    env.leads = false;
    env
}

/// The place of a dependent's resource among all objects, whatever its place in the config.
pub fn place(dependent: &Dependent) -> usize {
    let name = &dependent.resource.name;
    let place = NAMES.iter().position(|known| known == name);
    place.expect("a known name")
}

impl Life {
    pub fn new(seed: u64, plan: &Plan) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let env = environment(plan, &mut rng);
        let nodes = Nodes::new(plan, &mut rng);
        let object = |one: &Dependent| Observed {
            uid: one.resource.name.clone(),
            ..running(2)
        };
        let replica = || LifeReplica {
            machine: None,
            env: env.clone(),
            view: None,
            stale: 0.0..0.0,
            awaits: HashMap::new(),
            suspended_until: 0.0,
            memory: OracleMemory::default(),
        };
        let mut life = Self {
            mishaps: StdRng::seed_from_u64(rng.random()),
            answers: rng,
            t: 0.0,
            events: BTreeMap::new(),
            count: 0,
            replicas: [replica(), replica()],
            objects: env.config.dependents.iter().map(object).map(Some).collect(),
            expected: [2; NAMES.len()],
            taken_off: [false; NAMES.len()],
            version: 10,
            made: vec![],
            conflicts: 0,
            probes: 0,
            lists: 0,
            log: vec![format!(
                "silent {:?}, away {:?}",
                nodes.silences, nodes.away
            )],
            nodes,
            config: env.config,
            paused: (false, 0.0),
            is_ours: (true, 0.0),
            leader_renewed: 0.0,
            wrong: vec![],
            in_a_hold: 0,
            plan: plan.clone(),
        };
        for by in 0..if plan.alone { 1 } else { 2 } {
            life.at(plan.starts[by], move |life| life.start(by));
        }
        if plan.calm >= 0.0 {
            life.at(30.0, Self::mishap);
        }
        life.at(45.0, Self::gardenlet);
        life.at(plan.calm_from(), Self::calm_down);
        if plan.leadership == Leadership::Go {
            life.at(33.0, Self::go);
        }
        let mut suspended = plan.suspended.clone();
        if plan.freezes {
            suspended.extend(life.nodes.away.clone());
        }
        for span in suspended {
            life.at(span.start, move |life| life.suspend(0, span.end));
        }
        life
    }

    /// Lets something happen at a moment.
    pub fn at(&mut self, t: Seconds, event: impl FnOnce(&mut Self) + Send + 'static) {
        self.count += 1;
        let microseconds = (t.max(self.t) * 1e6).ceil() as u64;
        self.events
            .insert((microseconds, self.count), Box::new(event));
    }

    pub fn after(&mut self, takes: Seconds, event: impl FnOnce(&mut Self) + Send + 'static) {
        self.at(self.t + takes, event);
    }

    pub fn note(&mut self, what: impl Display) {
        self.log.push(format!("{:.3} {what}", self.t));
    }

    pub fn draw(&mut self, (from, to): (Seconds, Seconds)) -> Seconds {
        self.answers.random_range(from..=to)
    }

    /// True while nothing goes wrong any more.
    pub fn is_calm(&self) -> bool {
        self.t >= self.plan.calm_from()
    }

    pub fn run(&mut self) {
        self.run_until(self.plan.life, |_| false);
        self.check_end();
    }

    /// Lives on to a moment, or until something is so.
    pub fn run_until(&mut self, end: Seconds, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let next = self.events.first_entry();
            let Some(next) = next.filter(|next| next.key().0 as f64 / 1e6 <= end) else {
                self.t = self.t.max(end);
                return;
            };
            let ((when, _), event) = next.remove_entry();
            self.t = self.t.max(when as f64 / 1e6);
            if self.count > MOST_EVENTS * (100 + self.t as u64) {
                self.wrong.push(format!("{:.2} a hot loop", self.t));
                return self.events.clear();
            }
            event(self);
        }
    }

    fn woken(&mut self, by: usize) {
        let next = self.replicas[by].machine.as_ref().and_then(Shoot::next);
        if next.is_some_and(|next| next <= at(self.t)) {
            self.wake(by);
        }
    }

    pub fn wake(&mut self, by: usize) {
        self.feed(by, Input::Woken);
    }

    fn feed(&mut self, by: usize, input: Input) {
        if self.replicas[by].suspended_until > self.t {
            return;
        }
        let env = self.env(by);
        let Some(machine) = &mut self.replicas[by].machine else {
            return;
        };
        let actions = machine.input(input, &env, at(self.t));
        if let Some(next) = machine.next() {
            let next = next.elapsed_since_start().as_seconds_f64();
            self.at(next.max(self.t + 2e-6), move |life| life.woken(by));
        }
        for action in actions {
            self.carry_out(by, action);
        }
    }

    fn ask(&mut self, by: usize, awaited: Awaited) -> Request {
        self.count += 1;
        let number = self.count;
        self.replicas[by].awaits.insert(awaited, number);
        Request {
            by,
            awaited,
            number,
        }
    }

    fn is_awaited(&self, request: Request) -> bool {
        self.replicas[request.by].awaits.get(&request.awaited) == Some(&request.number)
    }

    fn answer(&mut self, takes: Seconds, request: Request, input: Input) {
        self.after(takes, move |life| life.answered(request, input));
    }

    fn answered(&mut self, request: Request, input: Input) {
        let by = request.by;
        let until = self.replicas[by].suspended_until;
        if until > self.t {
            return self.at(until + 3e-6, move |life| life.answered(request, input));
        }
        if !self.is_awaited(request) {
            return;
        }
        self.replicas[by].awaits.remove(&request.awaited);
        self.note_answer(by, &input);
        self.feed(by, input);
    }

    pub fn place(&self, by: usize, id: DependentId) -> usize {
        place(self.replicas[by].env.config.dependent(id))
    }

    fn carry_out(&mut self, by: usize, action: Action) {
        match action {
            Action::Probe { with_nodes } => self.probe(by, with_nodes),
            Action::AwaitPermit(direction) => {
                let awaited = Awaited::Permit(direction);
                if !self.replicas[by].awaits.contains_key(&awaited) {
                    let request = self.ask(by, awaited);
                    let takes = match direction {
                        Direction::Up => self.draw((0.0, self.plan.queue)),
                        Direction::Down => 0.0,
                    };
                    self.answer(takes, request, Input::Permitted(direction));
                }
            }
            Action::Write(order) => self.send(by, order),
            Action::Cancel(id) => drop(self.replicas[by].awaits.remove(&Awaited::Dependent(id))),
            Action::Report(Report::Found) => self.note_finding(by),
            Action::Report(report) => {
                if matches!(report, Report::NotScaled(..)) {
                    self.check_failures(by);
                }
                self.note(format!("{by} {report:?}"));
            }
        }
    }

    fn probe(&mut self, by: usize, with_nodes: bool) {
        self.probes += 1;
        let request = self.ask(by, Awaited::Probe);
        self.check_probes(by);
        if any_contains(&self.nodes.away, self.t) {
            let takes = self.draw((0.001, 4.0));
            return self.answer(takes, request, Input::Failed(ProbeFailure::Other));
        }
        if !self.is_calm() && self.answers.random::<f64>() < self.plan.fails {
            let takes = [0.002, 0.5, 5.0, 30.0][self.answers.random_range(0..4)];
            let failure = match self.answers.random_range(0..6) {
                0 if self.plan.throttles => {
                    let seconds = self.answers.random_range(0..20);
                    ProbeFailure::Throttled(TimeDelta::seconds(seconds))
                }
                _ => ProbeFailure::Other,
            };
            return self.answer(takes, request, Input::Failed(failure));
        }
        let takes = self.draw(self.plan.answers);
        let received = self.t + takes;
        let times = RequestTimes {
            sent: at(self.t + 1e-6),
            received: at(received),
            wall: wall(received + self.plan.ours),
        };
        let leases = self.nodes.leases(self.t + takes / 2.0);
        let mut there = takes;
        let nodes = with_nodes.then(|| {
            self.lists += 1;
            // They are listed beside leases that take longer than that.
            let takes_too = self.draw(self.plan.answers);
            let begins = takes.min(NODES_BESIDE);
            there = takes.max(begins + takes_too);
            self.nodes.records(self.t + begins + takes_too / 2.0)
        });
        let answer = Answer {
            times,
            leases,
            nodes,
        };
        self.answer(there, request, Input::Probed(answer));
    }

    fn send(&mut self, by: usize, order: Order) {
        let id = order.dependent;
        let request = self.ask(by, Awaited::Dependent(id));
        let place = self.place(by, id);
        self.check_order(by, place, &order);
        if order.needs_lead || order.change.write.replicas != Some(0) {
            return self.send_confirmed(request, place, order);
        }
        let takes = self.draw(self.plan.seed).min(READ_LIMIT);
        let fails = self.answers.random::<f64>() < self.plan.fails / 2.0;
        if fails || takes == READ_LIMIT || !self.confirms(by) {
            let refused = Err(Refusal::Unverified(String::new()));
            return self.answer(takes, request, Input::Written(id, refused));
        }
        self.after(takes, move |life| {
            if life.is_awaited(request) {
                life.send_confirmed(request, place, order);
            }
        });
    }

    /// True if the seed's API server says of the shoot what the replica's view says.
    fn confirms(&self, by: usize) -> bool {
        let shown = &self.replicas[by].env.machines;
        let is_free = self.is_ours.0 && !self.paused.0;
        is_free && shown.as_ref() == Some(&self.nodes.machines(self.t))
    }

    fn send_confirmed(&mut self, request: Request, place: usize, order: Order) {
        let Order {
            dependent: id,
            limit,
            ..
        } = order;
        let takes = self.draw(self.plan.seed) / 2.0;
        if self.plan.refuses && place == 0 && self.t % 200.0 > 100.0 && !self.is_calm() {
            let denied = Refusal::Denied {
                code: 403,
                said: String::new(),
            };
            return self.answer(takes * 2.0, request, Input::Written(id, Err(denied)));
        }
        let lost = self.answers.random::<f64>() < self.plan.lost && !self.is_calm();
        if lost {
            let refused = Input::Written(id, Err(Refusal::Timeout));
            self.answer(limit.as_secs_f64(), request, refused);
        }
        if !lost || self.answers.random() {
            self.after(takes, move |life| {
                let result = life.write_arrives(request, place, &order.change);
                match result.filter(|_| !lost) {
                    Some(Err(Refusal::Conflict(_))) => life.read_again(request, id, place),
                    Some(result) => life.answer(takes, request, Input::Written(id, result)),
                    None => {}
                }
            });
        }
    }

    /// A dependent is read after a conflict.
    fn read_again(&mut self, request: Request, id: DependentId, place: usize) {
        let takes = self.draw(self.plan.seed);
        self.after(takes, move |life| {
            let conflict = Refusal::Conflict(state(&life.objects[place]));
            life.answer(takes, request, Input::Written(id, Err(conflict)));
        });
    }

    /// The write is made if it is still based on what there is. One that was cancelled may be made
    /// all the same, and has no answer.
    fn write_arrives(
        &mut self,
        request: Request,
        place: usize,
        change: &PlannedWrite,
    ) -> Option<Result<Arc<Observed>, Refusal>> {
        let awaited = self.is_awaited(request);
        if !awaited && self.answers.random() {
            return None;
        }
        let result = self.write(request.by, place, change);
        awaited.then_some(result)
    }

    pub fn start(&mut self, by: usize) {
        if self.replicas[by].machine.is_some() {
            return;
        }
        let known = |object: &Option<Observed>| Known::new(object.as_ref(), self.t);
        let replica = &mut self.replicas[by];
        (replica.suspended_until, replica.stale) = (0.0, 0.0..0.0);
        replica.view = Some(self.objects.iter().map(state).collect());
        (replica.env.paused, replica.env.is_ours) = (None, self.is_ours.0);
        replica.memory = OracleMemory {
            known: self.objects.iter().map(known).collect(),
            started: self.t,
            proof_from: self.t,
            changed_since: self.t,
            ..OracleMemory::default()
        };
        replica.see_clusters(self.t);
        let env = self.env(by);
        let start = Start {
            eligible: at(self.t),
            in_operation: !self.plan.fresh,
        };
        self.replicas[by].machine = Some(Shoot::new(start, &env, at(self.t)));
        self.note(format!("{by} starts"));
        let takes = self.draw(NAMESPACE_READ);
        self.after(takes, move |life| life.view_shoot(by));
        self.elect();
        self.wake(by);
    }
}
