//! Random lives of a shoot with two replicas: every answer takes its time, nodes come and go, and
//! an oracle that knows the truth judges each write.
//!
//! The short form lives each row twice, and the long one (`MODEL=long`) 600 times, or `LIVES` times.
//! `ROW=name` and `SEED=number` pick lives, and a life in which something is wrong is shown around
//! it:
//!
//! ```text
//! MODEL=long ROW=blips cargo test --release --package prober-core --lib -- tests::chaos --nocapture
//! ```

mod driver;
mod known;
mod memory;
mod mishaps;
mod nodes;
mod oracle;
mod plan;
mod rows;
mod seed;
mod switched_off;
mod views;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use driver::ChaosLife;
use known::{KNOWN, KNOWN_IN_A_HOLD};
use rows::{ChaosRow, ROWS};

use super::simulation::Seconds;

/// Result of a row's lives.
#[derive(Default)]
struct RowOutcome {
    lives: u64,
    wrong: Vec<ChaosLife>,
    in_a_hold: usize,
}

impl RowOutcome {
    fn of(row: &ChaosRow, seeds: Range<u64>) -> Self {
        let mut outcome = Self::default();
        for seed in seeds {
            let mut life = ChaosLife::new(seed, &row.plan);
            life.run();
            outcome.lives += 1;
            outcome.in_a_hold += life.in_a_hold;
            if !life.wrong.is_empty() {
                life.log.insert(0, format!("{} SEED={seed}", row.name));
                outcome.wrong.push(life);
            }
        }
        outcome
    }
}

/// Returns the value of a variable of the environment.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn is_long() -> bool {
    variable("MODEL").is_some_and(|form| form == "long")
}

fn number(name: &str) -> Option<u64> {
    Some(variable(name)?.parse().expect("a number"))
}

fn seeds() -> Range<u64> {
    match (number("SEED"), number("LIVES")) {
        (Some(seed), _) => seed..seed + 1,
        (None, Some(lives)) => 0..lives,
        (None, None) if is_long() => 0..600,
        (None, None) => 0..2,
    }
}

/// Lives all rows, as many at a time as there are processors.
fn live(rows: &[&ChaosRow]) -> Vec<RowOutcome> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = vec![];
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(row) = rows.get(at)
        {
            done.push((at, RowOutcome::of(row, seeds())));
        }
        done
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut outcomes: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .flat_map(|done| done.expect("a test failed"))
            .collect()
    });
    outcomes.sort_by_key(|(at, _)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// The events around the first thing that is wrong.
fn show(life: &ChaosLife) {
    let is_near = |line: &str, first: Seconds| {
        let t = line.split(' ').next().and_then(|t| t.parse().ok());
        t.is_none_or(|t: Seconds| first - 80.0 < t && t < first + 25.0)
    };
    let wrong = life.log.iter().find(|line| line.contains(" WRONG "));
    let first = wrong.and_then(|line| line.split(' ').next()?.parse().ok());
    let first = first.unwrap_or(Seconds::MAX);
    println!("{:#?}", &life.wrong[..life.wrong.len().min(5)]);
    let near = life.log.iter().filter(|line| is_near(line, first));
    near.for_each(|line| println!("    {line}"));
}

/// Lives of 600 of a row in which something is known to be wrong; one that is picked is shown.
fn known(row: &ChaosRow) -> usize {
    if variable("SEED").is_some() {
        return 0;
    }
    let known = KNOWN.iter().find(|(name, ..)| *name == row.name);
    known.map_or(0, |(_, lives, _)| *lives)
}

/// Counts wrongs by their words, without the numbers.
fn kinds(lives: &[ChaosLife]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for wrong in lives.iter().flat_map(|life| &life.wrong) {
        let words = wrong
            .split(' ')
            .filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
        *kinds
            .entry(words.collect::<Vec<_>>().join(" "))
            .or_default() += 1;
    }
    kinds
}

#[test]
fn random_lives_write_nothing_wrong() {
    let wanted = variable("ROW");
    let rows: Vec<_> = ROWS
        .iter()
        .filter(|row| wanted.as_ref().is_none_or(|name| row.name == name))
        .collect();
    let outcomes = live(&rows);
    // All of a row's lives, so that what is better is noticed too.
    let whole = seeds() == (0..600);
    let (mut differ, mut in_a_hold) = (vec![], 0);
    for (row, outcome) in rows.iter().zip(&outcomes) {
        let (wrong, known) = (outcome.wrong.len(), known(row));
        in_a_hold += outcome.in_a_hold;
        println!(
            "{}: {wrong} of {} lives wrong, {} writes in a hold {:?}",
            row.name,
            outcome.lives,
            outcome.in_a_hold,
            kinds(&outcome.wrong)
        );
        if wrong > known || whole && wrong < known {
            outcome.wrong.iter().take(1).for_each(show);
            differ.push(format!("{}: {wrong}, not {known}", row.name));
        }
    }
    println!("{in_a_hold} writes in a hold");
    if whole && wanted.is_none() && in_a_hold != KNOWN_IN_A_HOLD {
        differ.push(format!("in a hold: {in_a_hold}, not {KNOWN_IN_A_HOLD}"));
    }
    assert!(
        differ.is_empty(),
        "lives with something wrong, other than `known.rs` says: {differ:#?}"
    );
}

#[test]
fn known_wrongs_are_of_rows() {
    let is_row = |name: &str| ROWS.iter().any(|row| row.name == name);
    assert!(KNOWN.iter().all(|(name, ..)| is_row(name)));
}
