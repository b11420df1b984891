//! Random lives of whole agents on tokio's paused clock, judged by the oracle. `LIVES` says how many
//! there are, `FIRST` with which seed they begin; `LOG` names a file for all that the agents log, which
//! is of use for one life.

use std::thread;
use std::time::Duration;

use faults::life::{Life, on_paused_clock};
use faults::oracle::violations::RunTotals;

/// What a life has been: what was found in it and counted, and what happened.
fn live(seed: u64) -> (RunTotals, Vec<String>) {
    on_paused_clock(seed, async move || {
        let mut life = Life::begin(seed, 2, 3, None).await?;
        life.round(1, Duration::from_secs(75), true).await?;
        let world = life.end().await?;
        let violations = &world.oracle.violations;
        let stories = world.shoots.iter();
        let stories = stories.flat_map(|shoot| shoot.record().story(violations.start));
        Ok((std::mem::take(&mut *violations.totals()), stories.collect()))
    })
    .expect("a life")
}

fn number(variable: &str, usual: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(usual, |number| number.parse().expect("a number"))
}

#[test]
fn random_lives_break_no_rule() {
    let (first, count) = (number("FIRST", 0), number("LIVES", 8));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let wrong = |thread: usize| {
        let seeds = (first..first + count).skip(thread).step_by(threads);
        let wrong = seeds.filter(|seed| {
            let (totals, _) = live(*seed);
            println!("{seed}: {:?}, {:?}", totals.found, totals.counts);
            for (_, text) in &totals.evidence {
                println!("!!! seed {seed}, {text}");
            }
            !totals.found.is_empty()
        });
        wrong.collect()
    };
    let wrong: Vec<Vec<u64>> = thread::scope(|scope| {
        let lives = (0..threads).map(|thread| scope.spawn(move || wrong(thread)));
        let lives: Vec<_> = lives.collect();
        let ended = lives.into_iter().map(|lives| lives.join().expect("lives"));
        ended.collect()
    });
    assert!(wrong.concat().is_empty(), "{wrong:?}");
}

#[test]
fn a_seed_repeats_its_life() {
    for seed in 0..number("REPEATED", 2) {
        let [(_, one), (_, other)] = [live(seed), live(seed)];
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert!(one == other, "seed {seed}: {differs:?}");
    }
}
