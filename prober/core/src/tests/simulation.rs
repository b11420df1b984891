//! The machine itself over hours of simulated time: nodes with clocks of their own, that step and
//! drift, answers and renewals that are slow, probes that fail, API servers that are away for
//! everyone, outages at random moments, starts in the midst of one.
//!
//! What must come out: no healthy shoot is scaled down, and no outage is seen late but for what the
//! lease clock gives (D-21, D-54). `cargo test --package prober --lib core::tests::simulation --
//! --nocapture` prints the figures; with `MODEL=long` each comes from 100 runs a size of shoot
//! instead of 12.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use chrono::TimeDelta;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::scene::{dependent, env, span, wall};
use crate::lease::{LeaseList, LeaseRecord, LeaseUid};
use crate::moment::{Moment, RequestTimes};
use crate::shoot::{Action, Input, ProbeFailure, Shoot, Start};
use crate::verdict::{BackedNodes, NodeRecord, NodeTraits};

/// A kubelet's interval of renewals, and the duration of its lease.
const BEAT_S: f64 = 10.0;
const LEASE_S: i32 = 40;
const THRESHOLD_S: f64 = 30.0;
const LONGEST_GAP_S: f64 = 16.4;
/// The nodes are listed beside leases that take longer.
const NODES_BESIDE_S: f64 = 0.1;

/// Seconds of true time; the prober's own monotonic clock is true here.
pub type Seconds = f64;

/// Error of a node's clock, of a number from 0 to 1 drawn for it.
pub type Skew = fn(f64) -> f64;

/// Absences of the API server.
#[derive(Clone, Debug)]
pub enum Away {
    Never,
    /// For so long, at a random moment.
    Once(Seconds),
    /// For 8 to 15 s every 2 to 8 s, for four minutes.
    Flapping,
    During(Range<Seconds>),
}

#[derive(Clone)]
pub struct SimulatedWorld {
    pub nodes: usize,
    /// Start of the prober.
    pub start: Seconds,
    /// True if the shoot is in operation then.
    pub in_operation: bool,
    /// The shoot's nodeMonitorGracePeriod.
    pub grace: Seconds,
    /// Time around which every kubelet starts twice, and so renews at once.
    pub restarts: Option<Seconds>,
    /// The first so many nodes carry a condition that excludes them.
    pub excluded: usize,
    pub skew: Skew,
    pub step: Option<(Seconds, Seconds)>,
    pub drift: f64,
    /// Time at which the nodes lose the way to the API server.
    pub cut: Option<Seconds>,
    /// Times in which no probe is made.
    pub gaps: Vec<Range<Seconds>>,
    pub away: Away,
    /// True if the prober stands still while the API server is away.
    pub frozen: bool,
    /// The share of probes that fail.
    pub flaky: f64,
    pub initial_delay: Seconds,
    /// Error of our own wall clock.
    pub ours: Seconds,
    /// The longest that an answer takes.
    pub slow: Seconds,
    /// Time that each answer takes besides.
    pub latency: Seconds,
    /// Time that the first probe after the cut takes longer, as its kept connection has died.
    pub hedge: Seconds,
    /// Beats are stretched by up to this share, and renewals delayed by up to so many seconds.
    pub jitter: f64,
    pub lag: Seconds,
    pub until: Seconds,
}

impl Default for SimulatedWorld {
    fn default() -> Self {
        Self {
            nodes: 3,
            start: 0.0,
            in_operation: false,
            grace: 40.0,
            restarts: None,
            excluded: 0,
            skew: |_| 0.0,
            step: None,
            drift: 0.0,
            cut: None,
            gaps: vec![],
            away: Away::Never,
            frozen: false,
            flaky: 0.0,
            initial_delay: 30.0,
            ours: 0.0,
            slow: 0.0,
            latency: 0.0,
            hedge: 0.0,
            jitter: 0.0,
            lag: 0.0,
            until: 1200.0,
        }
    }
}

/// The renewals of one node: the time at which the API server took each, and its stamp.
pub struct SimulatedNode {
    pub name: String,
    renewals: Vec<(Seconds, Seconds)>,
    next: usize,
}

impl SimulatedNode {
    pub fn new(number: usize, renewals: Vec<(Seconds, Seconds)>) -> Self {
        Self {
            name: format!("node-{number:04}"),
            renewals,
            next: 0,
        }
    }

    /// Time of its last renewal before a moment.
    pub fn renewed_by(&self, t: Seconds) -> Seconds {
        let later = self.renewals.partition_point(|(taken, _)| *taken <= t);
        self.renewals[later.saturating_sub(1)].0
    }

    fn stamp(&mut self, t: Seconds) -> Seconds {
        while self
            .renewals
            .get(self.next + 1)
            .is_some_and(|(taken, _)| *taken <= t)
        {
            self.next += 1;
        }
        self.renewals[self.next].1
    }

    fn last_renewal(&self) -> Seconds {
        self.renewals[self.renewals.len() - 1].0
    }
}

#[derive(Default)]
pub struct SimulatedRun {
    pub down: Option<Seconds>,
    up: Option<Seconds>,
    pub probes: usize,
    /// Number of lists of nodes.
    pub lists: usize,
    pub ended: Seconds,
    /// Time of the first probe after the end.
    due: Seconds,
    grace: Seconds,
    /// Times of the last renewals of the candidates, oldest first.
    last: Vec<Seconds>,
}

impl SimulatedRun {
    /// Delay of the scale-down after the moment at which it was possible.
    pub fn late(&self) -> Seconds {
        self.silence() - THRESHOLD_S
    }

    /// Time for which the last lease that made it an outage had not been renewed then.
    fn silence(&self) -> Seconds {
        let needed = (1..=self.last.len())
            .find(|&count| count as f64 / self.last.len() as f64 >= 0.6)
            .expect("60 % of something");
        self.down.unwrap_or(self.ended) - self.last[needed - 1]
    }

    /// True if kube-controller-manager marked a node first.
    pub fn is_lost(&self) -> bool {
        self.down.unwrap_or(self.ended) > self.last[0] + self.grace
    }
}

impl SimulatedWorld {
    pub fn run(&self, seed: u64) -> SimulatedRun {
        let mut rng = StdRng::seed_from_u64(seed);
        let away = self.away(&mut rng);
        let mut nodes: Vec<SimulatedNode> = (0..self.nodes)
            .map(|number| self.node(number, &away, &mut rng))
            .collect();
        let machines: Arc<BackedNodes> =
            Arc::new(nodes.iter().map(|node| Some(node.name.as_str())).collect());
        let record = |(number, node): (usize, &SimulatedNode)| {
            let traits = NodeTraits {
                not_managed_by_mcm: number < self.excluded,
                ..NodeTraits::default()
            };
            NodeRecord::new(&node.name, traits)
        };
        let records: Vec<NodeRecord> = nodes.iter().enumerate().map(record).collect();
        let mut last: Vec<Seconds> = nodes[self.excluded..]
            .iter()
            .map(SimulatedNode::last_renewal)
            .collect();
        last.sort_by(f64::total_cmp);
        let mut run = SimulatedRun {
            grace: self.grace,
            last,
            ended: self.until,
            ..SimulatedRun::default()
        };

        let mut env = env([dependent("machine-controller-manager", 0, 0)]);
        Arc::make_mut(&mut env.config).initial_delay =
            std::time::Duration::from_secs_f64(self.initial_delay);
        env.settings.node_monitor_grace = Some(span(self.grace));
        env.chance = rng.random();
        env.machines = Some(machines);
        let start = Start {
            eligible: at(self.start),
            in_operation: self.in_operation,
        };
        let mut shoot = Shoot::new(start, &env.env(), start.eligible);
        let mut t = self.start;
        let mut idle = 0;
        let (mut hedged, mut nodes_take) = (false, 0.0);
        while t < self.until {
            env.chance = rng.random();
            let mut pending = shoot.input(Input::Woken, &env.env(), at(t));
            while !pending.is_empty() {
                // What takes no time does not wait for what does.
                let at_once = pending.iter().position(|action| {
                    !matches!(action, Action::ListLeases { .. } | Action::ListNodes)
                });
                let more = match pending.remove(at_once.unwrap_or(0)) {
                    Action::ListLeases { with_nodes } => {
                        run.probes += 1;
                        if self.frozen
                            && let Some(away) = away.iter().find(|away| away.contains(&t))
                        {
                            t = away.end;
                        }
                        if away.iter().any(|away| away.contains(&t))
                            || rng.random::<f64>() < self.flaky
                        {
                            shoot.input(Input::Failed(ProbeFailure::Other), &env.env(), at(t))
                        } else {
                            if self.cut.is_some_and(|cut| t >= cut)
                                && !std::mem::replace(&mut hedged, true)
                            {
                                t += self.hedge;
                            }
                            let takes = self.latency + rng.random::<f64>() * self.slow;
                            nodes_take = if with_nodes {
                                self.latency.min(NODES_BESIDE_S)
                            } else {
                                self.latency
                            };
                            let times = RequestTimes {
                                sent: at(t),
                                received: at(t + takes),
                                wall: wall(t + takes + self.ours),
                            };
                            let leases = leases(&mut nodes, t + takes / 2.0);
                            t += takes;
                            shoot.input(Input::Leases(times, leases), &env.env(), at(t))
                        }
                    }
                    Action::ListNodes => {
                        run.lists += 1;
                        t += nodes_take;
                        shoot.input(Input::Nodes(records.clone()), &env.env(), at(t))
                    }
                    Action::AcquirePermit(dependent, _) => {
                        shoot.input(Input::Permitted(dependent), &env.env(), at(t))
                    }
                    Action::Write(order) => {
                        assert_eq!(order.change.write.replicas, Some(0));
                        (run.down, run.ended) = (Some(t), t);
                        return run;
                    }
                    Action::Report(_) => {
                        let up = shoot
                            .finding()
                            .is_some_and(|finding| finding.verdict.is_up());
                        run.up = run.up.or((up && t >= self.initial_delay).then_some(t));
                        vec![]
                    }
                    action => unreachable!("{action:?}"),
                };
                pending.extend(more);
            }
            let next = shoot
                .next()
                .map(|(next, _)| next)
                .map_or(self.until, |next| {
                    next.elapsed_since_start().as_seconds_f64()
                });
            idle = if next > t { 0 } else { idle + 1 };
            assert!(idle < 3, "the schedule must go on, or it is a hot loop");
            t = next.max(t);
            if let Some(gap) = self.gaps.iter().find(|gap| gap.contains(&t)) {
                t = gap.end;
            }
        }
        run.due = t;
        run
    }

    fn away(&self, rng: &mut StdRng) -> Vec<Range<Seconds>> {
        let begin = 600.0 + rng.random_range(0.0..19.0);
        match &self.away {
            Away::Never => vec![],
            Away::Once(span) => vec![begin..begin + span],
            Away::During(away) => vec![away.clone()],
            Away::Flapping => {
                let (mut away, mut t) = (vec![], begin);
                while t < 840.0 {
                    let end = t + rng.random_range(8.0..15.0);
                    away.push(t..end);
                    t = end + rng.random_range(2.0..8.0);
                }
                away
            }
        }
    }

    /// A kubelet's beat, and while the API server is away none; then within 7 s.
    pub fn node(&self, number: usize, away: &[Range<Seconds>], rng: &mut StdRng) -> SimulatedNode {
        let (base, mut t) = (
            (self.skew)(rng.random()),
            -120.0 + rng.random_range(0.0..BEAT_S),
        );
        let skew = |t: Seconds| {
            base + self
                .step
                .filter(|(from, _)| t >= *from)
                .map_or(0.0, |(_, by)| by)
                + self.drift * t
        };
        let mut restarts: VecDeque<Seconds> = self
            .restarts
            .into_iter()
            .map(|around| around + rng.random_range(0.0..BEAT_S))
            .flat_map(|first| [first, first + 1.0])
            .collect();
        let mut renewals = vec![];
        while t < self.until + 60.0 && self.cut.is_none_or(|cut| t <= cut) {
            let mut taken = t + rng.random::<f64>() * self.lag;
            while let Some(away) = away.iter().find(|away| away.contains(&taken)) {
                t = away.end + rng.random_range(0.0..0.7 * BEAT_S);
                taken = t;
            }
            if self.cut.is_none_or(|cut| taken <= cut) {
                renewals.push((taken, t + skew(t)));
            }
            t = taken + BEAT_S * (1.0 + rng.random::<f64>() * self.jitter);
            if let Some(restart) = restarts.pop_front_if(|restart| *restart < t) {
                t = restart.max(taken);
            }
        }
        SimulatedNode::new(number, renewals)
    }
}

pub fn leases(nodes: &mut [SimulatedNode], t: Seconds) -> LeaseList {
    let mut leases = LeaseList::default();
    for node in nodes {
        let renew_time = Some(wall(node.stamp(t)));
        leases.push(LeaseRecord {
            name: &node.name,
            uid: LeaseUid::default(),
            renew_time,
            duration_seconds: Some(LEASE_S),
        });
    }
    leases
}

/// As exact as the machine's own moments, and never before `t`.
pub fn at(t: Seconds) -> Moment {
    Moment::START + TimeDelta::nanoseconds((t * 1e9).ceil() as i64)
}

/// Number of runs that a row has for each size of shoot.
fn runs() -> u64 {
    if std::env::var("MODEL").is_ok_and(|form| form == "long") {
        100
    } else {
        12
    }
}

fn healthy_rows() -> Vec<(String, SimulatedWorld)> {
    let world = SimulatedWorld::default;
    let mut rows: Vec<(String, SimulatedWorld)> = Vec::new();
    let skews: [(i32, Skew); 10] = [
        (-60, |_| -60.0),
        (-30, |_| -30.0),
        (-25, |_| -25.0),
        (-20, |_| -20.0),
        (-12, |_| -12.0),
        (-5, |_| -5.0),
        (0, |_| 0.0),
        (5, |_| 5.0),
        (15, |_| 15.0),
        (60, |_| 60.0),
    ];
    for (off, skew) in skews {
        let row = format!("nodes' clocks {off:+}");
        rows.push((row, SimulatedWorld { skew, ..world() }));
        if ![0, 15, 60, -60].contains(&off) {
            continue;
        }
        for by in [
            -60.0, -31.0, -25.0, -19.0, -10.0, -5.0, -3.0, 3.0, 10.0, 60.0,
        ] {
            let step = Some((600.0, by));
            let row = format!("nodes step {by:+} from {off:+}");
            rows.push((
                row,
                SimulatedWorld {
                    skew,
                    step,
                    ..world()
                },
            ));
        }
    }
    for seconds in [10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 45.0, 60.0, 90.0, 600.0] {
        let away = Away::Once(seconds);
        let row = format!("API server away for all, {seconds} s");
        rows.push((row, SimulatedWorld { away, ..world() }));
    }
    for seconds in [20.0, 30.0, 45.0, 90.0] {
        let (away, frozen) = (Away::Once(seconds), true);
        let row = format!("frozen together with its API server, {seconds} s");
        rows.push((
            row,
            SimulatedWorld {
                away,
                frozen,
                ..world()
            },
        ));
    }
    let gaps = || vec![600.0..690.0, 900.0..945.0];
    #[rustfmt::skip]
    let others = [
        ("ours off by 60", SimulatedWorld { ours: 60.0, ..world() }),
        ("ours off by -35", SimulatedWorld { ours: -35.0, ..world() }),
        ("gaps of 90 and 45 s", SimulatedWorld { gaps: gaps(), ..world() }),
        ("gaps, nodes -60", SimulatedWorld { gaps: gaps(), skew: |_| -60.0, ..world() }),
        ("answers take up to 10 s", SimulatedWorld { slow: 10.0, ..world() }),
        ("beats jitter 4 %, renewals delayed up to 9 s", SimulatedWorld { jitter: 0.04, lag: 9.0, ..world() }),
        ("drift 1/1000", SimulatedWorld { drift: 0.001, ..world() }),
        ("drift -1/1000", SimulatedWorld { drift: -0.001, ..world() }),
        ("API server away at the start, 5 s", SimulatedWorld { away: Away::During(-200.0..5.0), initial_delay: 0.0, ..world() }),
        ("API server away at the start, 40 s", SimulatedWorld { away: Away::During(-200.0..40.0), ..world() }),
        ("API server flaps for 4 minutes (no promise)", SimulatedWorld { away: Away::Flapping, ..world() }),
    ];
    rows.extend(others.map(|(row, world)| (row.to_owned(), world)));
    rows
}

#[test]
fn no_healthy_shoot_is_scaled_down() {
    let (rows, mut simulated, mut wrong) = (healthy_rows(), 0, vec![]);
    for (name, world) in &rows {
        for nodes in [2, 3, 5, 30] {
            let runs = if nodes == 30 { runs() / 4 } else { runs() };
            simulated += runs;
            let count = (0..runs)
                .filter(|seed| {
                    SimulatedWorld {
                        nodes,
                        ..world.clone()
                    }
                    .run(seed * 7919 + nodes as u64)
                    .down
                    .is_some()
                })
                .count();
            // At most 0.4 % of absences of 14 to 18 s that fall between two probes are not noticed
            // (D-54).
            if count > 0 {
                wrong.push(format!("{name}, {nodes} nodes: {count} of {runs}"));
            }
        }
    }
    println!(
        "{} kinds of trouble, {simulated} simulated lives of healthy shoots: wrongly scaled down {wrong:?}",
        rows.len()
    );
    assert!(
        wrong
            .iter()
            .all(|row| row.contains("away for all, 15") || row.contains("no promise")),
        "{wrong:?}"
    );
}

/// Shorter than two renewals: leases would expire between two of them.
const SHORT_GRACES: [Seconds; 4] = [1.0, 4.0, 10.0, 15.0];

#[test]
fn short_grace_keeps_healthy_shoots_up() {
    let world = || SimulatedWorld {
        jitter: 0.04,
        until: 700.0,
        ..SimulatedWorld::default()
    };
    #[rustfmt::skip]
    let rows = [
        ("nothing else", world()),
        ("starts in operation, nodes behind", SimulatedWorld { initial_delay: 0.0, skew: |_| -60.0, ..world() }),
        ("every kubelet starts twice", SimulatedWorld { restarts: Some(300.0), ..world() }),
        ("renewals and answers take up to 1 s", SimulatedWorld { lag: 1.0, slow: 1.0, ..world() }),
        ("API server away for all, 20 s", SimulatedWorld { away: Away::Once(20.0), ..world() }),
    ];
    for (name, world) in rows {
        for grace in SHORT_GRACES {
            for nodes in [2, 3, 5] {
                for seed in 0..runs() {
                    let world = SimulatedWorld {
                        nodes,
                        grace,
                        ..world.clone()
                    };
                    let down = world.run(seed * 7919 + nodes as u64).down;
                    assert_eq!(down, None, "{name}, {grace} s, {nodes} nodes");
                }
            }
        }
    }
}

#[test]
fn short_grace_finds_outages_in_time() {
    for grace in SHORT_GRACES {
        for seed in 0..runs() {
            let cut = 300.0 + StdRng::seed_from_u64(seed).random_range(0.0..60.0);
            let world = SimulatedWorld {
                grace,
                cut: Some(cut),
                until: 500.0,
                ..SimulatedWorld::default()
            };
            let silence = world.run(seed).silence();
            assert!((15.0..15.01).contains(&silence), "{grace} s: {silence} s");
        }
    }
}

/// Outages at random moments: each a name, a world, and how many seconds late a scale-down may be
/// at most.
#[rustfmt::skip]
fn outages() -> Vec<(&'static str, SimulatedWorld, Seconds)> {
    let world = || SimulatedWorld {
        until: 1100.0,
        ..SimulatedWorld::default()
    };
    let put_back = |by: f64| SimulatedWorld {
        skew: |_| 15.0,
        step: Some((300.0, -by)),
        ..world()
    };
    vec![
        ("clocks agree", world(), 0.01),
        ("nodes uniform +-3", SimulatedWorld { skew: |draw| draw * 6.0 - 3.0, ..world() }, 2.2),
        ("nodes -60", SimulatedWorld { skew: |_| -60.0, ..world() }, 1.7),
        ("nodes +8", SimulatedWorld { skew: |_| 8.0, ..world() }, 1.7),
        ("nodes +60", SimulatedWorld { skew: |_| 60.0, ..world() }, 1.7),
        ("3 of 5 nodes +60", SimulatedWorld { skew: |draw| if draw < 0.6 { 60.0 } else { 0.0 }, ..world() }, 1.7),
        ("ours +60", SimulatedWorld { ours: 60.0, ..world() }, 1.7),
        ("drift 1/1000", SimulatedWorld { drift: 0.001, ..world() }, 1.7),
        ("nodes +15, put back by 3 at 300", put_back(3.0), 8.5),
        ("nodes +15, put back by 10 at 300", put_back(10.0), 8.5),
        ("nodes +15, put back by 25 at 300", put_back(25.0), 8.5),
        ("nodes 0, put back by 5 at 300", SimulatedWorld { step: Some((300.0, -5.0)), ..world() }, 8.5),
        ("every kept connection dies, answers in 0.02 s", SimulatedWorld { hedge: 0.5, latency: 0.02, ..world() }, 0.6),
        ("every kept connection dies, answers in 0.3 s", SimulatedWorld { hedge: 0.5, latency: 0.3, ..world() }, 1.1),
        // What is slower, or fails, is not bounded, only measured (limits.md).
        ("answers take 1 s", SimulatedWorld { latency: 1.0, ..world() }, 3.0),
        ("answers take 1.9 s", SimulatedWorld { latency: 1.9, ..world() }, f64::MAX),
        ("answers take 3 s", SimulatedWorld { latency: 3.0, ..world() }, f64::MAX),
        ("2 % of all probes fail", SimulatedWorld { flaky: 0.02, ..world() }, f64::MAX),
        ("5 % of all probes fail", SimulatedWorld { flaky: 0.05, ..world() }, f64::MAX),
        ("30 % of all probes fail", SimulatedWorld { flaky: 0.3, ..world() }, f64::MAX),
    ]
}

#[test]
fn outage_is_seen_the_moment_it_can_be() {
    let mut simulated = 0;
    for (name, world, bound) in outages() {
        for (nodes, excluded) in [(2, 0), (3, 0), (5, 2), (30, 0)] {
            let (mut late, mut lost, mut probes, mut minutes) = (vec![], 0, 0, 0.0);
            for seed in 0..runs() {
                let cut = 900.0 + StdRng::seed_from_u64(seed).random_range(0.0..60.0);
                let run = SimulatedWorld {
                    nodes,
                    excluded,
                    cut: Some(cut),
                    ..world.clone()
                }
                .run(seed * 31 + nodes as u64);
                assert!(
                    run.down.is_some() || bound == f64::MAX,
                    "{name}, {nodes} nodes: not seen at all"
                );
                late.push(run.late());
                lost += usize::from(run.is_lost());
                (probes, minutes) = (probes + run.probes, minutes + run.ended / 60.0);
                simulated += 1;
            }
            late.sort_by(f64::total_cmp);
            let (median, worst, early) = (
                late[late.len() / 2],
                late[late.len() - 1],
                late.iter().filter(|late| **late < -1.0).count(),
            );
            println!(
                "{name:>34} n={nodes:<3} excluded={excluded}: {median:.2} {worst:.2} s late; lost {lost}; early {early}; {:.2} probes a minute",
                probes as f64 / minutes
            );
            assert!(worst <= bound, "{name}, {nodes} nodes: {worst} s late");
        }
    }
    println!("{simulated} simulated outages");
}

#[test]
fn clocks_put_back_are_forgiven() {
    let world = || SimulatedWorld {
        until: 4200.0,
        ..SimulatedWorld::default()
    };
    #[rustfmt::skip]
    let rows = [
        ("put back by 3", SimulatedWorld { skew: |_| 15.0, step: Some((300.0, -3.0)), ..world() }),
        ("put back by 8", SimulatedWorld { skew: |_| 15.0, step: Some((300.0, -8.0)), ..world() }),
        ("a thousandth too slow", SimulatedWorld { skew: |_| 15.0, drift: -0.001, ..world() }),
    ];
    for (name, world) in rows {
        let mut earliest = f64::INFINITY;
        for seed in 0..runs() {
            let cut = 3900.0 + StdRng::seed_from_u64(seed).random_range(0.0..60.0);
            earliest = earliest.min(
                SimulatedWorld {
                    cut: Some(cut),
                    ..world.clone()
                }
                .run(seed)
                .late(),
            );
        }
        println!("{name}: an outage after an hour is seen {earliest:.2} s late at least");
        assert!(earliest >= -1.0, "{name}: {earliest} s");
    }
}

#[test]
fn start_in_mid_outage_protects_soon() {
    for age in [0.0, 10.0, 20.0, 29.0, 35.0, 100.0] {
        let world = SimulatedWorld {
            nodes: 5,
            cut: Some(-age),
            until: 200.0,
            initial_delay: 0.0,
            ..SimulatedWorld::default()
        };
        let mut worst: Seconds = 0.0;
        for seed in 0..runs() * 4 {
            let run = world.run(seed);
            let down = run.down.expect("the outage is seen");
            worst = worst.max(down - (run.last[2] + THRESHOLD_S).max(0.0));
            assert!(
                age < 31.0 || run.up.is_none(),
                "found well {:?} s after a start {age} s into an outage",
                run.up
            );
        }
        println!(
            "start {age} s into an outage: scaled down at most {worst:.1} s after the first possible moment"
        );
        // A beat and the tolerance, which is what the first probe must be followed by (D-54).
        assert!(worst <= BEAT_S + 1.1, "{worst} s");
    }
}

#[test]
fn healthy_shoot_is_probed_rarely() {
    for nodes in [2, 5, 100] {
        let run = SimulatedWorld {
            nodes,
            until: 7200.0,
            ..SimulatedWorld::default()
        }
        .run(1);
        let per_minute = run.probes as f64 / run.ended * 60.0;
        assert!(
            (1.6..4.0).contains(&per_minute),
            "{nodes} nodes: {per_minute} probes a minute"
        );
    }
}

#[test]
fn shoots_get_out_of_step() {
    // How far each of a hundred shoots is in its longest gap after an hour, in tenths of it.
    let mut tenths = [0; 10];
    for seed in 0..100 {
        let world = SimulatedWorld {
            nodes: 2,
            until: 3600.0,
            in_operation: true,
            ..SimulatedWorld::default()
        };
        let phase = (world.run(seed).due - world.until) / LONGEST_GAP_S;
        tenths[(phase * 10.0) as usize % 10] += 1;
    }
    assert!(
        tenths.iter().all(|&count| count > 0 && count < 30),
        "{tenths:?}"
    );
}
