//! Outages, one replica: how late each is seen, and how often kube-controller-manager marks a node
//! first.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{LIVES, count, measure, ntp, spread};
use crate::tests::simulation::{Away, Seconds, SimulatedWorld};

/// Sizes of shoots, and how many nodes are excluded.
const SIZES: [(usize, usize); 4] = [(2, 0), (3, 0), (5, 2), (30, 0)];

/// Sets the cut of a world, and what comes with it, of a number from 0 to 1 and another one.
type Cut = fn(&mut SimulatedWorld, f64, f64) -> Seconds;

const LATER: Cut = |_, draw, _| 900.0 + 60.0 * draw;
const JUST_STARTED: Cut = |world, draw, _| {
    world.start = 840.0;
    840.0 + 60.0 * draw
};
const JUST_AWAY: Cut = |world, draw, _| {
    world.away = Away::During(850.0..870.0);
    870.0 + 30.0 * draw
};
const AWAY_FOR_3_S: Cut = |world, draw, other| {
    let cut = 900.0 + 30.0 * draw;
    let from = cut + 30.0 * other;
    world.away = Away::During(from..from + 3.0);
    cut
};

fn live(row: &str, world: &SimulatedWorld, cut: Cut) {
    let (mut late, mut lost, mut early, mut probes, mut lists) = (vec![], 0, 0, 0, 0);
    for (nodes, excluded) in SIZES {
        for seed in 0..LIVES {
            let seed = seed * 31 + nodes as u64;
            let mut rng = StdRng::seed_from_u64(seed);
            let mut world = SimulatedWorld {
                nodes,
                excluded,
                until: 1100.0,
                ..world.clone()
            };
            world.cut = Some(cut(&mut world, rng.random(), rng.random()));
            let run = world.run(seed);
            late.push(run.late());
            lost += usize::from(run.is_lost());
            early += usize::from(run.late() < -1.0);
            probes += run.probes;
            lists += run.lists;
        }
    }
    count(row, "outages lost", lost);
    count(row, "taken down early", early);
    measure(row, "probes", probes as f64 / late.len() as f64);
    measure(row, "lists of nodes", lists as f64 / late.len() as f64);
    spread(row, "late", late);
}

#[test]
#[ignore = "prints figures"]
fn outages_as_seen_by_one_replica() {
    #[rustfmt::skip]
    let rows = [
        ("outage", ntp(), LATER),
        ("kept connection dies, 0.5 s", SimulatedWorld { hedge: 0.5, ..ntp() }, LATER),
        ("kept connection dies, 2 s", SimulatedWorld { hedge: 2.0, ..ntp() }, LATER),
        ("answers take 0.3 s", SimulatedWorld { latency: 0.3, ..ntp() }, LATER),
        ("answers take 1 s", SimulatedWorld { latency: 1.0, ..ntp() }, LATER),
        ("2 % of probes fail", SimulatedWorld { flaky: 0.02, ..ntp() }, LATER),
        ("5 % of probes fail", SimulatedWorld { flaky: 0.05, ..ntp() }, LATER),
        ("30 % of probes fail", SimulatedWorld { flaky: 0.3, ..ntp() }, LATER),
        ("start up to 60 s before", ntp(), JUST_STARTED),
        ("API server away for 20 s just before", ntp(), JUST_AWAY),
        ("API server away for 3 s in the outage", ntp(), AWAY_FOR_3_S),
        ("X clocks +-3", SimulatedWorld { skew: |draw| draw * 6.0 - 3.0, ..ntp() }, LATER),
        ("X clocks -60", SimulatedWorld { skew: |_| -60.0, ..ntp() }, LATER),
        ("X clocks +8", SimulatedWorld { skew: |_| 8.0, ..ntp() }, LATER),
        ("X clocks +60", SimulatedWorld { skew: |_| 60.0, ..ntp() }, LATER),
        ("X our clock +60", SimulatedWorld { ours: 60.0, ..ntp() }, LATER),
        ("X clocks gain 1 s in 1,000", SimulatedWorld { drift: 0.001, ..ntp() }, LATER),
        ("X clocks +15, put back by 3 s", SimulatedWorld { skew: |_| 15.0, step: Some((300.0, -3.0)), ..ntp() }, LATER),
        ("X clocks +15, put back by 25 s", SimulatedWorld { skew: |_| 15.0, step: Some((300.0, -25.0)), ..ntp() }, LATER),
        ("X clocks put back by 10 s just before", SimulatedWorld { step: Some((860.0, -10.0)), ..ntp() }, LATER),
        ("X clocks put back by 35 s just before", SimulatedWorld { step: Some((860.0, -35.0)), ..ntp() }, LATER),
    ];
    rows.iter()
        .for_each(|(row, world, cut)| live(row, world, *cut));
}
