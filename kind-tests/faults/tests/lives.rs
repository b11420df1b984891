//! Random lives of whole agents on tokio's paused clock, judged by the oracle. `LIVES` says how many
//! there are, `FIRST` with which seed they begin; `LOG` names a file for all that the agents log, which
//! is of use for one life.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use clap::Parser;
use faults::life::{Life, on_paused_clock};
use faults::options::SoakOptions;
use faults::oracle::violations::RunTotals;

/// All that a life has been, as far as others can see it: to compare it with another one.
struct Lived {
    totals: RunTotals,
    story: Vec<String>,
}

fn live(seed: u64) -> Lived {
    let words = format!("soak none --shoots=2 --duration=75s --rounds=1 --seed={seed}");
    let options = SoakOptions::parse_from(words.split(' '));
    on_paused_clock(seed, async move || {
        let mut life = Life::begin(&options, 3, None).await?;
        life.round(&options, 1).await?;
        let world = life.end().await?;
        let start = world.oracle.violations.start;
        let stories = world.shoots.iter().map(|shoot| shoot.record().story(start));
        Ok(Lived {
            story: stories.flatten().collect(),
            totals: std::mem::take(&mut *world.oracle.violations.totals()),
        })
    })
    .expect("a life")
}

fn number(variable: &str, usual: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(usual, |number| number.parse().expect("a number"))
}

#[test]
fn random_lives_break_no_rule() {
    let (next, first) = (AtomicU64::new(0), number("FIRST", 0));
    let (count, wrong) = (number("LIVES", 8), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let Lived { totals, .. } = live(first + number);
                    let seed = first + number;
                    println!("{seed}: {:?}, {:?}", totals.found, totals.counts);
                    for (_, text) in &totals.evidence {
                        println!("!!! seed {seed}, {text}");
                    }
                    let found = totals.found.values().sum();
                    wrong.fetch_add(found, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn a_seed_repeats_its_life() {
    for seed in 0..number("REPEATED", 2) {
        let [one, other] = [live(seed).story, live(seed).story];
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert!(one == other, "seed {seed}: {differs:?}");
    }
}
