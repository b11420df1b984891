//! Two replicas of the prober over simulated lives of one shoot, in which answers take no time:
//! outages with clocks that are off and replicas that start in them, and rollouts. The duels of
//! `rent` are such lives, too.
//!
//! What must come out: nothing is taken down while enough nodes renew, and nothing is brought back
//! while they do not.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::scene::{OwnedEnvironment, dependent, env, running, wall};
use super::simulation::{Seconds, SimulatedNode, SimulatedWorld, at, leases};
use crate::config::{Dependent, DependentId};
use crate::moment::RequestTimes;
use crate::plan::ByDirection;
use crate::refusal::Refusal;
use crate::replicas::{DependentState, Observed};
use crate::shoot::{Action, Input, Order, ProbeFailure, Report, Shoot, Start, Verified};
use crate::verdict::{BackedNodes, NodeRecord, NodeTraits, Verdict};

/// Time up to which nodes renew.
const LIFE_S: Seconds = 2400.0;

/// Leases that are younger are no reason to take anything down: 30 s less what an answer takes.
const HEALTHY_S: Seconds = 29.9;
/// A probe that was sent so long ago must have shown it (D-57).
const PROBED_S: Seconds = 2.5;
/// With leases this old nothing is brought back: 30 s, and the longest that a restore goes on
/// behind its last probe.
const SILENT_S: Seconds = 36.0;

#[derive(Clone, Copy, Default)]
pub struct Trouble {
    /// True if views show a write up to 3 s later.
    pub lag: bool,
    /// The share of probes that fail, and of writes without an answer.
    pub flaky: f64,
    pub lost: f64,
}

pub struct SimulatedReplica {
    pub shoot: Option<Shoot>,
    pub starts_at: Seconds,
    pub env: OwnedEnvironment,
    view: Vec<Observed>,
    view_is_due: Seconds,
    /// Writes whose answer is lost, and the end of the wait for it.
    unanswered: Vec<(Seconds, DependentId)>,
}

pub struct Life {
    rng: StdRng,
    pub trouble: Trouble,
    pub t: Seconds,
    pub replicas: [SimulatedReplica; 2],
    pub objects: Vec<Observed>,
    /// The writes that were made: when, by whom, of what, to how many.
    pub writes: Vec<(Seconds, usize, usize, Option<i32>)>,
    pub conflicts: usize,
    pub probes: usize,
    /// Number of lists of nodes.
    pub lists: usize,
    /// The replica whose probes get no answer.
    pub blind: Option<usize>,
    /// Times at which the pods of what was taken down have ended.
    pods_end: [Seconds; 3],
    version: u64,
    pub until: Seconds,
    nodes: Vec<SimulatedNode>,
    machines: Arc<BackedNodes>,
    log: Vec<String>,
    pub wrong: Vec<String>,
}

const NAMES: [&str; 3] = ["kcm", "mcm", "ca"];

fn dependents() -> [Dependent; 3] {
    let [kcm, mcm, ca] = NAMES;
    let mut manager = dependent(mcm, 1, 0);
    manager.scale_up.initial_delay = Duration::from_secs(30);
    let mut autoscaler = dependent(ca, 2, 0);
    autoscaler.optional = true;
    [dependent(kcm, 0, 1), manager, autoscaler]
}

pub fn node(number: usize, silences: &[(Seconds, Seconds)], rng: &mut StdRng) -> SimulatedNode {
    let (mut t, mut renewals) = (-60.0 + rng.random_range(0.0..10.0), vec![]);
    while t < LIFE_S + 60.0 {
        while let Some(silence) = silences
            .iter()
            .find(|silence| silence.0 <= t && t < silence.1)
        {
            t = silence.1 + rng.random_range(0.0..7.0);
        }
        renewals.push((t, t));
        t += 10.0 + rng.random_range(0.0..0.4);
    }
    SimulatedNode::new(number, renewals)
}

impl Life {
    /// The replicas, of which the first one leads, start at these moments.
    pub fn of(
        trouble: Trouble,
        nodes: Vec<SimulatedNode>,
        starts: [Seconds; 2],
        until: Seconds,
        rng: StdRng,
    ) -> Self {
        let objects: Vec<Observed> = ["a", "b", "c"]
            .map(|uid| Observed {
                uid: uid.into(),
                ..running(2)
            })
            .into();
        let replica = |leads, starts_at| SimulatedReplica {
            shoot: None,
            starts_at,
            env: OwnedEnvironment {
                leads,
                ..env(dependents())
            },
            view: objects.clone(),
            view_is_due: 0.0,
            unanswered: vec![],
        };
        Self {
            replicas: [replica(true, starts[0]), replica(false, starts[1])],
            trouble,
            t: 0.0,
            writes: vec![],
            conflicts: 0,
            probes: 0,
            lists: 0,
            blind: None,
            pods_end: [Seconds::MAX; 3],
            version: 10,
            machines: Arc::new(nodes.iter().map(|node| Some(node.name.as_str())).collect()),
            until,
            nodes,
            log: vec![],
            objects,
            wrong: vec![],
            rng,
        }
    }

    /// Returns the true age at a moment of the lease that decides the verdict.
    fn age_at(&self, t: Seconds) -> Seconds {
        let mut renewed: Vec<Seconds> = self.nodes.iter().map(|node| node.renewed_by(t)).collect();
        renewed.sort_by(f64::total_cmp);
        let deciding = (1..=renewed.len())
            .find(|&count| count as f64 / renewed.len() as f64 >= 0.6)
            .expect("60 % of something");
        t - renewed[deciding - 1]
    }

    fn note(&mut self, what: &str) {
        self.log.push(format!("{:.2} {what}", self.t));
    }

    fn env(&mut self, by: usize) -> OwnedEnvironment {
        let replica = &mut self.replicas[by];
        if !self.trouble.lag || self.t >= replica.view_is_due {
            replica.view.clone_from(&self.objects);
        }
        let state = |seen: &Observed| DependentState::Present(Arc::new(seen.clone()));
        let env = &mut replica.env;
        env.chance = self.rng.random();
        env.machines = Some(Arc::clone(&self.machines));
        env.dependents = replica.view.iter().map(state).collect();
        env.clone()
    }

    fn feed(&mut self, by: usize, input: Input) {
        let mut inputs = VecDeque::from([input]);
        let mut count = 0;
        while let Some(input) = inputs.pop_front() {
            count += 1;
            assert!(
                count < 2000,
                "a hot loop: {:#?}",
                &self.log[self.log.len().saturating_sub(20)..]
            );
            let (env, now) = (self.env(by), at(self.t));
            let Some(shoot) = &mut self.replicas[by].shoot else {
                return;
            };
            for action in shoot.input(input, &env.env(), now) {
                inputs.extend(self.answer(by, action));
            }
        }
    }

    fn answer(&mut self, by: usize, action: Action) -> Option<Input> {
        Some(match action {
            Action::ListLeases { .. } => {
                self.t += 0.001;
                self.probes += 1;
                if self.blind == Some(by) || self.rng.random::<f64>() < self.trouble.flaky {
                    return Some(Input::Failed(ProbeFailure::Other));
                }
                let t = self.t;
                self.t += 0.01;
                let times = RequestTimes {
                    sent: at(t),
                    received: at(self.t),
                    wall: wall(self.t),
                };
                Input::Leases(times, leases(&mut self.nodes, t))
            }
            Action::ListNodes => {
                self.lists += 1;
                let record =
                    |node: &SimulatedNode| NodeRecord::new(&node.name, NodeTraits::default());
                Input::Nodes(self.nodes.iter().map(record).collect())
            }
            Action::Verify => {
                let is_paused = self.replicas[by].env.paused == Some(true);
                let machines = Arc::clone(&self.machines);
                Input::Verified(Some(Verified {
                    is_ours: true,
                    is_paused,
                    standby_protects: true,
                    machines,
                }))
            }
            Action::AcquirePermit(dependent, _) => Input::Permitted(dependent),
            Action::Read(dependent, _) => {
                let object = self.objects[dependent.0].clone();
                Input::Read(dependent, Ok(DependentState::Present(Arc::new(object))))
            }
            Action::Write(order) => return self.write(by, order),
            Action::Report(Report::Found) => {
                let finding = self.replicas[by].shoot.as_ref().and_then(Shoot::finding);
                let found = finding.map(|finding| (finding.verdict, finding.tally));
                self.note(&format!("{by} finds {found:?}"));
                return None;
            }
            Action::Cancel(id) => {
                let unanswered = &mut self.replicas[by].unanswered;
                unanswered.retain(|(_, dependent)| *dependent != id);
                return None;
            }
            Action::Report(_) => return None,
        })
    }

    fn write(
        &mut self,
        by: usize,
        Order {
            dependent,
            change,
            limit,
            ..
        }: Order,
    ) -> Option<Input> {
        let place = dependent.0;
        let lost = self.rng.random::<f64>() < self.trouble.lost;
        if change.base.resource_version != self.objects[place].resource_version {
            self.conflicts += 1;
            return Some(Input::Written(dependent, Err(Refusal::Conflict)));
        }
        if lost {
            let until = self.t + limit.as_secs_f64();
            self.replicas[by].unanswered.push((until, dependent));
        }
        if lost && self.rng.random() {
            return None;
        }
        self.version += 1;
        let mut after = change.after(self.version.to_string());
        match after.replicas {
            0 => {
                (after.ready, self.pods_end[place]) = (
                    self.objects[place].ready,
                    self.t + self.rng.random_range(0.0..6.0),
                )
            }
            ready => after.ready = ready,
        }
        let (name, to, age) = (NAMES[place], change.write.replicas, self.age_at(self.t));
        self.note(&format!(
            "{by} writes {name} {to:?}, marker {}, leases {age:.1} s old",
            after.marks.held_down
        ));
        // What has begun goes on while leases are doubted (D-23).
        let finding = self.replicas[by].shoot.as_ref().and_then(Shoot::finding);
        let doubts = finding.is_some_and(|finding| finding.verdict == Verdict::HoldUndecided);
        let wrong = match to {
            Some(0) if !doubts && self.age_at(self.t - PROBED_S) < HEALTHY_S - PROBED_S => {
                Some("is taken down although the nodes renew")
            }
            Some(1..) if age >= SILENT_S => Some("is brought back although the nodes do not renew"),
            Some(1..) if to != Some(2) => Some("is brought back to other replicas"),
            _ => None,
        };
        self.wrong
            .extend(wrong.map(|wrong| format!("{:.2} {name} {wrong}: {to:?}, {age:.1} s", self.t)));
        self.writes.push((self.t, by, place, to));
        self.objects[place] = after.clone();
        for replica in &mut self.replicas {
            if self.t >= replica.view_is_due {
                replica.view_is_due = self.t + self.rng.random_range(0.0..3.0);
            }
        }
        (!lost).then(|| Input::Written(dependent, Ok(Arc::new(after))))
    }

    /// Gives up waiting for answers that are lost.
    fn time_out(&mut self, by: usize) {
        let t = self.t;
        let unanswered = &mut self.replicas[by].unanswered;
        let over: Vec<_> = unanswered
            .extract_if(.., |(until, _)| *until <= t)
            .collect();
        for (_, dependent) in over {
            self.feed(by, Input::Written(dependent, Err(Refusal::Timeout)));
        }
    }

    pub fn put(&mut self, place: usize, mut object: Observed) {
        self.version += 1;
        (object.ready, object.resource_version) = (object.replicas, self.version.to_string());
        self.note(&format!(
            "{} is edited: {} {:?}",
            NAMES[place], object.replicas, object.marks
        ));
        self.objects[place] = object;
    }

    /// Pods of what is at 0 end.
    fn end_pods(&mut self) {
        for place in 0..3 {
            if self.t < self.pods_end[place] {
                continue;
            }
            self.pods_end[place] = Seconds::MAX;
            if self.objects[place].replicas == 0 {
                self.version += 1;
                let object = &mut self.objects[place];
                (object.ready, object.resource_version) = (0, self.version.to_string());
            }
        }
    }

    fn start(&mut self, by: usize) {
        let now = at(self.t);
        if self.replicas[by].shoot.is_none() && self.t >= self.replicas[by].starts_at {
            self.replicas[by].env.seed_since = ByDirection {
                up: Some(now),
                down: Some(now),
            };
            self.replicas[by].unanswered.clear();
            let env = self.env(by);
            self.replicas[by].shoot = Some(Shoot::new(
                Start {
                    eligible: now,
                    in_operation: true,
                },
                &env.env(),
                now,
            ));
        }
    }

    /// A replica leads from now on.
    pub fn lead(&mut self, by: usize) {
        let env = &mut self.replicas[by].env;
        env.leads = true;
        env.leader_silent_from = None;
        env.seed_since.up = Some(at(self.t));
    }

    pub fn run(&mut self) {
        while self.t < self.until {
            self.end_pods();
            for by in 0..2 {
                self.start(by);
                self.time_out(by);
                self.feed(by, Input::Woken);
            }
            let wanted = |replica: &SimulatedReplica| {
                let next = replica.shoot.as_ref().map(|shoot| {
                    shoot
                        .next()
                        .map(|(next, _)| next)
                        .map_or(self.until, |next| {
                            next.elapsed_since_start().as_seconds_f64()
                        })
                });
                let view = Some(replica.view_is_due).filter(|due| *due > self.t);
                [Some(next.unwrap_or(replica.starts_at)), view]
                    .into_iter()
                    .flatten()
                    .chain(replica.unanswered.iter().map(|(until, _)| *until))
                    .fold(self.until, f64::min)
            };
            let pods_end = self.pods_end.into_iter().fold(self.until, f64::min);
            self.t = self
                .replicas
                .iter()
                .map(wanted)
                .fold(pods_end, f64::min)
                .max(self.t + 0.0001);
        }
    }
}

/// Returns how many of so many lives, ten times as many in the long form, had something wrong, as
/// `live` says with its log; the first one is shown.
fn wrong_lives(name: &str, lives: u64, live: impl Fn(u64) -> (Vec<String>, Vec<String>)) -> usize {
    let lives = if std::env::var("MODEL").is_ok_and(|form| form == "long") {
        10 * lives
    } else {
        lives
    };
    let wrong: Vec<_> = (0..lives)
        .map(|seed| (seed, live(seed)))
        .filter(|(_, (wrong, _))| !wrong.is_empty())
        .collect();
    println!(
        "{name}: {} of {lives} lives with something wrong",
        wrong.len()
    );
    if let Some(first) = wrong.first() {
        println!("{first:#?}");
    }
    wrong.len()
}

#[test]
fn nothing_comes_back_in_mid_outage() {
    let world = || SimulatedWorld {
        until: 440.0,
        ..SimulatedWorld::default()
    };
    let skewed = |skew| SimulatedWorld { skew, ..world() };
    let put_back = |skew, by: Seconds| SimulatedWorld {
        step: Some((300.0, -by)),
        ..skewed(skew)
    };
    type Starts = fn(Seconds) -> [Seconds; 2];
    let long: Starts = |_| [0.0, 0.0];
    #[rustfmt::skip]
    let rows: [(&str, SimulatedWorld, Starts); 12] = [
        ("clocks agree", world(), long),
        ("the leader started 60 s before", world(), |cut| [cut - 60.0, 0.0]),
        ("nodes +60", skewed(|_| 60.0), long),
        ("nodes +60, the leader started 40 s before", skewed(|_| 60.0), |cut| [cut - 40.0, 0.0]),
        ("nodes +60, the leader started 90 s before", skewed(|_| 60.0), |cut| [cut - 90.0, 0.0]),
        ("nodes -60, the leader started 60 s before", skewed(|_| -60.0), |cut| [cut - 60.0, 0.0]),
        ("nodes +15, the leader started 60 s before", skewed(|_| 15.0), |cut| [cut - 60.0, 0.0]),
        ("nodes +3, the leader started 60 s before", skewed(|_| 3.0), |cut| [cut - 60.0, 0.0]),
        ("nodes -12, the leader started 60 s before", skewed(|_| -12.0), |cut| [cut - 60.0, 0.0]),
        ("nodes +15, put back by 10 s at 300 s, the standby started at 320 s", put_back(|_| 15.0, 10.0), |_| [0.0, 320.0]),
        ("nodes +15, put back by 25 s at 300 s", put_back(|_| 15.0, 25.0), long),
        ("nodes put back by 5 s at 300 s", put_back(|_| 0.0, 5.0), long),
    ];
    let mut wrong = 0;
    for (name, world, starts) in rows {
        for nodes in [3, 5] {
            wrong += wrong_lives(name, 6, |seed| {
                let mut rng = StdRng::seed_from_u64(seed * 31 + nodes as u64);
                let cut = 350.0 + rng.random_range(0.0..30.0);
                let world = SimulatedWorld {
                    nodes,
                    cut: Some(cut),
                    ..world.clone()
                };
                let renewals = (0..nodes)
                    .map(|number| world.node(number, &[], &mut rng))
                    .collect();
                let mut life =
                    Life::of(Trouble::default(), renewals, starts(cut), world.until, rng);
                life.run();
                // With clocks that were put back an outage may be seen early.
                life.wrong.retain(|wrong| wrong.contains("brought back"));
                (life.wrong, life.log)
            });
        }
    }
    assert_eq!(wrong, 0);
}

#[test]
fn rollout_in_a_restore_costs_no_delay() {
    let lives = (0..40).map(|seed| {
        let mut rng = StdRng::seed_from_u64(seed);
        let renewed = 400.0 + rng.random_range(0.0..30.0);
        let nodes = (0..3)
            .map(|number| node(number, &[(300.0, renewed)], &mut rng))
            .collect();
        let rolled = rng.random_range(0.0..25.0);
        let mut life = Life::of(Trouble::default(), nodes, [0.0, Seconds::MAX], renewed, rng);
        let run = |life: &mut Life, is_done: fn(&Life) -> bool| {
            while !is_done(life) {
                life.until += 0.1;
                life.run();
            }
            life.t
        };
        life.run();
        run(&mut life, |life| life.objects[0].replicas > 0);
        life.until += rolled;
        life.run();
        life.replicas[1].starts_at = life.t;
        life.until += 2.0;
        life.run();
        (
            life.replicas[0].shoot,
            life.replicas[0].starts_at,
            life.replicas[0].env.leads,
        ) = (None, Seconds::MAX, false);
        life.lead(1);
        let began = life.t;
        let restored = run(&mut life, |life| life.objects[1].replicas > 0);
        assert!(life.wrong.is_empty(), "{:#?}", life.wrong);
        restored - began
    });
    let mut lives: Vec<_> = lives.collect();
    lives.sort_by(f64::total_cmp);
    println!(
        "restored {:.1} to {:.1} s after the rollout, in the middle {:.1} s",
        lives[0], lives[39], lives[20]
    );
    // Two renewals that are seen, and machine-controller-manager's own 30 s.
    assert!(lives[39] < 30.0 + 15.0, "{lives:?}");
}
