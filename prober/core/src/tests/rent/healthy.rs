//! Healthy shoots, one replica: how often each is taken down, and what it costs.

use std::ops::Range;

use super::{LIVES, count, measure, ntp};
use crate::tests::simulation::{Away, Seconds, SimulatedWorld, Skew};

const FEW: [usize; 3] = [2, 3, 5];
const ALL: [usize; 4] = [2, 3, 5, 30];

fn live(row: &str, sizes: &[usize], world: &SimulatedWorld) {
    let (mut down, mut probes, mut lists, mut minutes) = (0, 0, 0, 0.0);
    for &nodes in sizes {
        for seed in 0..LIVES {
            let world = SimulatedWorld {
                nodes,
                ..world.clone()
            };
            let run = world.run(seed * 7919 + nodes as u64);
            down += usize::from(run.down.is_some());
            probes += run.probes;
            lists += run.lists;
            minutes += run.ended / 60.0;
        }
    }
    count(row, "healthy shoots taken down", down);
    measure(row, "probes a minute", probes as f64 / minutes);
    measure(row, "lists of nodes a minute", lists as f64 / minutes);
}

#[test]
#[ignore = "prints figures"]
fn healthy_shoots_that_an_operator_can_meet() {
    let short = || SimulatedWorld {
        until: 800.0,
        ..ntp()
    };
    live("NTP", &ALL, &ntp());
    for seconds in [12.0, 15.0, 18.0, 22.0, 30.0, 45.0, 90.0] {
        let away = Away::Once(seconds);
        let row = format!("API server away for {seconds} s");
        live(&row, &ALL, &SimulatedWorld { away, ..short() });
    }
    for back in [3.0, 15.0, 40.0] {
        let world = SimulatedWorld {
            away: Away::During(-60.0..back),
            until: 120.0,
            ..ntp()
        };
        live(
            &format!("start, API server back after {back} s"),
            &ALL,
            &world,
        );
    }
    #[rustfmt::skip]
    let rows = [
        ("API server away for 25 s, 5 % of probes fail", SimulatedWorld { away: Away::Once(25.0), flaky: 0.05, ..short() }),
        ("API server flaps", SimulatedWorld { away: Away::Flapping, until: 900.0, ..ntp() }),
        ("answers take up to 10 s", SimulatedWorld { slow: 10.0, ..short() }),
        ("renewals up to 9 s late", SimulatedWorld { jitter: 0.04, lag: 9.0, ..short() }),
        ("process stands still", SimulatedWorld { gaps: vec![600.0..690.0, 900.0..945.0], ..ntp() }),
        ("process stands still while the API server is away", SimulatedWorld { away: Away::Once(30.0), frozen: true, ..short() }),
    ];
    rows.iter().for_each(|(row, world)| live(row, &FEW, world));
}

#[test]
#[ignore = "prints figures"]
fn healthy_shoots_with_exotic_clocks() {
    let skews: [(i32, Skew); 5] = [
        (-60, |_| -60.0),
        (-12, |_| -12.0),
        (0, |draw| draw * 0.1 - 0.05),
        (8, |_| 8.0),
        (60, |_| 60.0),
    ];
    let steps: [Seconds; 7] = [-60.0, -35.0, -22.0, -13.0, -5.0, 10.0, 60.0];
    for (off, skew) in skews {
        let world = SimulatedWorld {
            skew,
            until: 760.0,
            ..ntp()
        };
        live(&format!("X clocks {off:+}"), &FEW, &world);
        for by in steps {
            let row = format!("X clocks {off:+}, step by {by:+}");
            let stepped = SimulatedWorld {
                step: Some((600.0, by)),
                ..world.clone()
            };
            live(&row, &FEW, &stepped);
            let late = SimulatedWorld {
                jitter: 0.04,
                lag: 9.0,
                ..stepped
            };
            live(&format!("{row}, renewals up to 9 s late"), &FEW, &late);
        }
    }
    let away: Range<Seconds> = 610.0..622.0;
    #[rustfmt::skip]
    let rows = [
        ("X one clock of three -40", SimulatedWorld { skew: |draw| if draw < 0.33 { -40.0 } else { 0.0 }, ..ntp() }),
        ("X our clock +60", SimulatedWorld { ours: 60.0, ..ntp() }),
        ("X our clock -35", SimulatedWorld { ours: -35.0, ..ntp() }),
        ("X clocks lose 1 s in 1,000", SimulatedWorld { drift: -0.001, ..ntp() }),
        ("X clocks put back by 35 s, API server away for 12 s", SimulatedWorld { step: Some((600.0, -35.0)), away: Away::During(away), ..ntp() }),
    ];
    rows.iter().for_each(|(row, world)| live(row, &FEW, world));
}
