//! Random lives of whole agents on tokio's paused clock, judged by the oracle. `LIVES` says how many
//! there are, `FIRST` with which seed they begin; `LOG` names a file for all that the agents log, which
//! is of use for one life.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use clap::{Parser, ValueEnum};
use faults::life::{Life, on_paused_clock};
use faults::options::SoakOptions;
use faults::oracle::violations::{RunTotals, ViolationKind};

/// All that a life has been, as far as others can see it: to compare it with another one.
struct Lived {
    totals: RunTotals,
    story: Vec<String>,
}

/// Lives once; words are those of the soak.
fn live(seed: u64, words: &str) -> Lived {
    let line = format!("soak none --shoots=2 --duration=75s --seed={seed} {words}");
    let options = SoakOptions::parse_from(line.split_whitespace());
    on_paused_clock(seed, async move || {
        let life = Life::begin(&options, 3).await?;
        life.round(&options).await?;
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
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
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
                    let Lived { totals, .. } = live(first + number, "");
                    println!(
                        "{}: {} wrong, {:?}",
                        first + number,
                        totals.all(),
                        totals.counts
                    );
                    for (_, text) in &totals.evidence {
                        println!("!!! seed {}, {text}", first + number);
                    }
                    wrong.fetch_add(totals.all(), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn a_seed_repeats_its_life() {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    for seed in 0..number("REPEATED", 2) {
        let [one, other] = [live(seed, "").story, live(seed, "").story];
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert!(one == other, "seed {seed}: {differs:?}");
    }
}

#[test]
fn what_is_done_wrong_is_found_as_what_it_is() {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    for (sabotage, wrong) in [
        ("scale-down", "wrong_scale_downs"),
        ("away", "wrong_scale_downs"),
        ("sleep", "missed_outages"),
        ("restore", "wrong_restores"),
        ("leaderless", "leaderless_writes"),
        ("memory", "wrong_memories"),
        ("deletion", "wrong_deletions"),
        ("record", "untrue_records"),
    ] {
        let Lived { totals, .. } = live(11, &format!("--sabotage={sabotage}"));
        let kind = |name| ViolationKind::from_str(name, false).expect("a kind");
        let expected = totals.total(kind(wrong));
        // What is done in the name of a replica is missing in its records.
        let untrue = match wrong {
            "untrue_records" => 0,
            _ => totals.total(ViolationKind::UntrueRecords),
        };
        assert!(
            expected > 0 && totals.all() == expected + untrue,
            "{sabotage}: {:#?}",
            totals.evidence
        );
    }
}
