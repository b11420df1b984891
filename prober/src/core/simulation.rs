//! The lease clock, the verdict and the schedule together, over hours of simulated time: nodes with clocks of their own,
//! outages at random moments, steps of clocks, gaps in probing, restarts.
//!
//! What must come out: no healthy shoot is ever scaled down; without skew a scale-down is late by nothing but the
//! millisecond of the schedule; after a restart in mid-outage nothing is scaled up.

use chrono::{DateTime, TimeDelta, Utc};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::lease::{Grace, LeaseBook, LeaseRecord};
use super::moment::{Look, Moment};
use super::schedule::{Outlook, next_look, verdict_possible};
use super::verdict::{BackedNodes, Candidates, NodeRecord, PoolConditions, Verdict, nodes_matter};

const GRACE: Grace = Grace::new(TimeDelta::seconds(40));
const FRACTION: f64 = 0.6;
const BEAT_S: f64 = 10.0;
const THRESHOLD_S: f64 = 30.0;
const INTERVAL_S: f64 = 30.0;
const JITTER: f64 = 0.2;

/// Seconds of true time; the prober's monotonic clock and wall clock are both true here, the nodes' need not be.
type Seconds = f64;

struct Node {
    phase: Seconds,
    skew: Seconds,
}

#[derive(Clone)]
struct World {
    nodes: usize,
    /// The first so many nodes carry a condition that excludes them.
    excluded: usize,
    skew: std::ops::RangeInclusive<Seconds>,
    /// How fast the nodes' clocks run away from ours, in seconds a second.
    drift: f64,
    /// When the nodes lose the way to the API server.
    cut: Option<Seconds>,
    /// When the nodes' clocks step, and by how much.
    step: Option<(Seconds, Seconds)>,
    /// From when to when no probe can be made.
    gaps: Vec<(Seconds, Seconds)>,
    initial_delay: Seconds,
    /// How long a look takes.
    takes: Seconds,
    until: Seconds,
}

impl Default for World {
    fn default() -> Self {
        Self {
            nodes: 3,
            excluded: 0,
            skew: 0.0..=0.0,
            drift: 0.0,
            cut: None,
            step: None,
            gaps: vec![],
            initial_delay: 30.0,
            takes: 0.0,
            until: 1800.0,
        }
    }
}

struct Run {
    down: Option<Seconds>,
    up: Option<Seconds>,
    /// When the verdict could first fall, by the true times of the last renewals.
    possible: Option<Seconds>,
    looks: usize,
    ended: Seconds,
}

impl World {
    fn run(&self, seed: u64) -> Run {
        let mut rng = StdRng::seed_from_u64(seed);
        let nodes: Vec<Node> = (0..self.nodes)
            .map(|_| Node { phase: rng.random_range(0.0..BEAT_S), skew: rng.random_range(self.skew.clone()) })
            .collect();
        let names: Vec<String> = (0..self.nodes).map(|i| format!("node-{i}")).collect();
        let machines: BackedNodes = names.iter().map(String::as_str).collect();
        let records: Vec<NodeRecord> = names
            .iter()
            .enumerate()
            .map(|(i, name)| NodeRecord { name: name.clone(), not_managed_by_mcm: i < self.excluded, ..NodeRecord::default() })
            .collect();
        let mut run = Run { down: None, up: None, possible: self.possible(&nodes), looks: 0, ended: self.until };
        let mut book = LeaseBook::default();
        let mut t = rng.random_range(0.0..=self.initial_delay / 2.0);
        while t < self.until {
            run.looks += 1;
            let now = moment(t);
            let received = moment(t + self.takes);
            let look = Look { sent: now, received, wall: wall(t + self.takes) };
            let leases = nodes.iter().zip(&names).map(|(node, name)| LeaseRecord {
                name,
                renew_time: Some(wall(self.stamp(node, t))),
                duration_seconds: Some(40),
            });
            book.observe(&look, leases, GRACE);
            let allowed = Candidates::by_machines(&book, &machines);
            let listed = nodes_matter(allowed.tally(now, GRACE), true);
            let candidates =
                if listed { Candidates::by_nodes(&book, &machines, &records, &PoolConditions::default()) } else { allowed };
            let verdict = candidates.tally(now, GRACE).verdict(FRACTION);
            if t >= self.initial_delay {
                match verdict {
                    Verdict::ScaleDown => {
                        (run.down, run.ended) = (Some(t), t);
                        return run;
                    }
                    Verdict::ScaleUp(_) => run.up = run.up.or(Some(t)),
                    Verdict::Hold(_) => {}
                }
            }
            let next = next_look(&Outlook {
                now: received,
                judged_at: now,
                interval: span(INTERVAL_S * (1.0 + rng.random_range(0.0..JITTER))),
                verdict_possible: verdict_possible(candidates.clocks(), listed, FRACTION, GRACE),
                doubt_from: Some(now + GRACE.longest_gap()),
                awaited: Some(moment(self.initial_delay) + TimeDelta::milliseconds(1)),
                failure: None,
            });
            assert!(next > now && next >= received, "the schedule must go on, or it is a hot loop");
            t = seconds(next);
            for &(from, to) in &self.gaps {
                if (from..to).contains(&t) {
                    t = to;
                }
            }
        }
        run
    }

    fn last_renewal(&self, node: &Node, t: Seconds) -> Seconds {
        let latest = self.cut.map_or(t, |cut| t.min(cut));
        node.phase + BEAT_S * ((latest - node.phase) / BEAT_S).floor()
    }

    fn stamp(&self, node: &Node, t: Seconds) -> Seconds {
        let renewed = self.last_renewal(node, t);
        let step = self.step.filter(|(at, _)| renewed >= *at).map_or(0.0, |(_, by)| by);
        renewed + node.skew + step + self.drift * renewed
    }

    fn possible(&self, nodes: &[Node]) -> Option<Seconds> {
        let cut = self.cut?;
        let mut renewals: Vec<Seconds> = nodes[self.excluded..].iter().map(|node| self.last_renewal(node, cut)).collect();
        renewals.sort_by(f64::total_cmp);
        let needed = (1..=renewals.len()).find(|&count| count as f64 / renewals.len() as f64 >= FRACTION)?;
        Some(renewals[needed - 1] + THRESHOLD_S)
    }

    /// Runs the world with many seeds.
    fn runs(&self, count: u64) -> impl Iterator<Item = Run> {
        (0..count).map(|seed| self.run(seed))
    }
}

fn span(seconds: Seconds) -> TimeDelta {
    TimeDelta::microseconds((seconds * 1e6).round() as i64)
}

fn moment(t: Seconds) -> Moment {
    Moment::START + span(t)
}

fn seconds(moment: Moment) -> Seconds {
    moment.elapsed_since_start().num_microseconds().expect("simulated times are short") as f64 / 1e6
}

fn wall(t: Seconds) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).expect("a valid time") + span(t)
}

const SKEWS: [Seconds; 11] = [0.0, -5.0, -9.0, -12.0, -20.0, -24.0, -30.0, -60.0, 5.0, 15.0, 60.0];

/// Every skew with small shoots, and with a large one.
fn healthy(seeds: u64, change: impl Fn(World) -> World) {
    for skew in SKEWS {
        for (nodes, seeds) in [(2, seeds), (3, seeds), (5, seeds), (100, 1)] {
            let world = change(World { nodes, skew: skew..=skew, ..World::default() });
            let wrong = world.runs(seeds).filter(|run| run.down.is_some()).count();
            assert_eq!(wrong, 0, "{wrong} of {seeds} healthy shoots of {nodes} nodes with clocks {skew} s off were scaled down");
        }
    }
}

#[test]
fn a_healthy_shoot_is_never_scaled_down_whatever_its_clocks_say() {
    healthy(40, |world| world);
}

#[test]
fn a_healthy_shoot_is_never_scaled_down_after_gaps_in_probing() {
    healthy(40, |world| World { gaps: vec![(600.0, 690.0), (1000.0, 1045.0)], ..world });
}

#[test]
fn a_healthy_shoot_is_never_scaled_down_when_its_clocks_step() {
    for step in [-60.0, -40.0, -31.0, -28.0, -25.0, -22.0, -19.0, -15.0, -10.0, -5.0, 5.0, 15.0, 30.0, 60.0] {
        healthy(25, |world| World { step: Some((200.0, step)), until: 400.0, ..world });
    }
}

/// What crystals do (100 ppm), what chrony and ntpd do at most to set a clock right (500 ppm), and a hundred times that.
const DRIFTS: [f64; 6] = [-0.05, -0.0005, -0.0001, 0.0001, 0.0005, 0.05];

#[test]
fn a_healthy_shoot_is_never_scaled_down_when_its_clocks_drift() {
    // Long enough for the offset to pass everything that the lease clock tells apart: 1 s, a beat and the threshold.
    for drift in DRIFTS {
        let until = (60.0 / drift.abs()).clamp(1800.0, 200_000.0);
        for nodes in [2, 5] {
            let world = World { nodes, drift, until, ..World::default() };
            let wrong = world.runs(2).filter(|run| run.down.is_some()).count();
            assert_eq!(wrong, 0, "{nodes} nodes, {drift} s a second: scaled down");
        }
    }
}

#[test]
fn an_outage_of_nodes_whose_clocks_drift_is_seen_at_most_a_gap_between_looks_late() {
    let mut rng = StdRng::seed_from_u64(7);
    for drift in DRIFTS.into_iter().filter(|drift| drift.abs() < 0.001) {
        for seed in 0..40 {
            // By the last of them the clocks are up to 60 s apart.
            let cut = rng.random_range(300.0..(60.0 / drift.abs()).min(200_000.0));
            let run = World { nodes: 2, drift, cut: Some(cut), until: cut + 300.0, ..World::default() }.run(seed);
            let down = run.down.expect("an outage must lead to a scale-down");
            let late = down - run.possible.expect("there is an outage");
            // When the last renewal is the one that shows how far the clock is off, it counts from when it was seen.
            let gap = seconds(Moment::START + GRACE.longest_gap());
            assert!(late <= gap, "drift {drift}, cut at {cut}: {late} s late");
            // A clock that falls behind makes leases look older than they are: seen early, and never before it began.
            assert!(down > cut, "drift {drift}, cut at {cut}: scaled down at {down}");
        }
    }
}

/// Outages at random moments: how late the scale-downs were, sorted.
fn lateness(world: &World, count: u64) -> Vec<Seconds> {
    let mut rng = StdRng::seed_from_u64(7);
    let mut late: Vec<Seconds> = (0..count)
        .map(|seed| {
            let world = World { cut: Some(300.0 + rng.random_range(0.0..60.0)), until: 600.0, ..world.clone() };
            let run = world.run(seed);
            run.down.expect("an outage must lead to a scale-down") - run.possible.expect("there is an outage")
        })
        .collect();
    late.sort_by(f64::total_cmp);
    late
}

const SHOOTS: [(usize, usize, u64); 6] = [(2, 0, 100), (3, 0, 100), (5, 0, 100), (5, 2, 100), (100, 0, 4), (100, 30, 4)];

#[test]
fn without_skew_an_outage_is_seen_the_moment_it_can_be() {
    for (nodes, excluded, seeds) in SHOOTS {
        let late = lateness(&World { nodes, excluded, ..World::default() }, seeds);
        assert!(late[0] >= 0.0, "{nodes} nodes: {} s early", -late[0]);
        assert!(late[late.len() - 1] < 0.01, "{nodes} nodes, {excluded} excluded: {} s late", late[late.len() - 1]);
    }
}

#[test]
fn an_outage_that_becomes_visible_while_a_look_is_under_way_is_seen_by_the_next_one() {
    for takes in [0.1, 1.0, 3.0] {
        for (nodes, excluded, seeds) in SHOOTS {
            let late = lateness(&World { nodes, excluded, takes, ..World::default() }, seeds);
            assert!(late[late.len() - 1] < takes + 0.01, "{nodes} nodes, looks of {takes} s: {} s late", late[late.len() - 1]);
        }
    }
}

#[test]
fn an_outage_soon_after_the_start_is_seen_the_moment_it_can_be() {
    for (nodes, excluded, seeds) in SHOOTS {
        for cut in [1.0, 6.0, 12.0, 20.0, 35.0] {
            let world = World { nodes, excluded, cut: Some(cut), until: 200.0, ..World::default() };
            for run in world.runs(seeds) {
                let down = run.down.expect("an outage must lead to a scale-down");
                // No write is made, and no stamp that was never seen to change is believed, before this.
                let earliest = run.possible.expect("there is an outage").max(world.initial_delay);
                assert!(down - earliest < 0.01, "{nodes} nodes, cut at {cut} s: {} s late", down - earliest);
            }
        }
    }
}

#[test]
fn with_skew_an_outage_is_seen_at_most_a_beat_late_and_never_early() {
    for skew in [-3.0..=3.0, -60.0..=-60.0, 60.0..=60.0] {
        for (nodes, excluded, seeds) in SHOOTS {
            let late = lateness(&World { nodes, excluded, skew: skew.clone(), ..World::default() }, seeds);
            // While clocks agree to within a beat and a second the stamp is believed, so up to 3 s of skew show here.
            assert!(late[0] >= -3.01, "{nodes} nodes, skew {skew:?}: {} s early", -late[0]);
            assert!(late[late.len() - 1] <= BEAT_S + 1.0, "{nodes} nodes, skew {skew:?}: {} s late", late[late.len() - 1]);
        }
    }
}

#[test]
fn a_process_that_starts_in_mid_outage_never_scales_up_first() {
    for initial_delay in [2.0, 30.0] {
        let world = World { nodes: 5, cut: Some(-50.0), initial_delay, until: 200.0, ..World::default() };
        for run in world.runs(200) {
            let down = run.down.expect("the outage must be seen");
            assert!(run.up.is_none_or(|up| up > down), "scaled up at {:?} in mid-outage", run.up);
            assert!(down <= initial_delay.max(initial_delay / 2.0 + BEAT_S + 1.0) + 0.01, "down only after {down} s");
        }
    }
}

#[test]
fn a_healthy_shoot_is_looked_at_about_three_times_a_minute() {
    for nodes in [2, 5, 100] {
        let run = World { nodes, until: 7200.0, ..World::default() }.run(1);
        let per_minute = run.looks as f64 / run.ended * 60.0;
        assert!((1.6..=3.5).contains(&per_minute), "{nodes} nodes: {per_minute} looks a minute");
    }
}
