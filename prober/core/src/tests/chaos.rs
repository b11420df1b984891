//! Random lives, judged by the oracle.
//!
//! The short form lives each row twice, and the long one (`MODEL=long`) 600 times, or `LIVES` times.
//! `ROW=name` and `SEED=number` pick lives, and a life in which something is wrong is shown around
//! it:
//!
//! ```text
//! MODEL=long ROW=blips cargo test --release --package prober-core --lib -- tests::chaos --nocapture
//! ```

mod known;
mod rows;
mod switched_off;

use std::collections::BTreeMap;
use std::ops::Range;

use known::{KNOWN, KNOWN_IN_A_HOLD};
use rows::ROWS;

use super::life::{Life, Plan, Seconds, each, lives, name, variable};

/// Result of a row's lives.
#[derive(Default)]
struct RowOutcome {
    wrong: Vec<Life>,
    in_a_hold: usize,
}

impl RowOutcome {
    fn of(row: &str, seeds: Range<u64>) -> Self {
        let (mut outcome, plan) = (Self::default(), Plan::of(&[row]));
        for seed in seeds {
            let mut life = Life::new(seed, &plan);
            life.run();
            outcome.in_a_hold += life.in_a_hold;
            if !life.wrong.is_empty() {
                life.log.insert(0, format!("{} SEED={seed}", name(row)));
                outcome.wrong.push(life);
            }
        }
        outcome
    }
}

/// The events around the first thing that is wrong.
fn show(life: &Life) {
    let time = |line: &String| line.split(' ').next()?.parse::<Seconds>().ok();
    let wrong = life.log.iter().find(|line| line.contains(" WRONG "));
    let first = wrong.and_then(time).unwrap_or(Seconds::MAX);
    println!("{:#?}", &life.wrong[..life.wrong.len().min(5)]);
    let is_near = |t: Seconds| first - 80.0 < t && t < first + 25.0;
    let near = life
        .log
        .iter()
        .filter(|line| time(line).is_none_or(is_near));
    near.for_each(|line| println!("    {line}"));
}

/// Counts wrongs by their words, without the numbers.
fn kinds(lives: &[Life]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for wrong in lives.iter().flat_map(|life| &life.wrong) {
        let words = wrong.split(' ');
        let words = words.filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
        *kinds
            .entry(words.collect::<Vec<_>>().join(" "))
            .or_default() += 1;
    }
    kinds
}

#[test]
fn random_lives_write_nothing_wrong() {
    let wanted: Option<String> = variable("ROW");
    let is_wanted = |row: &&&str| wanted.as_ref().is_none_or(|wanted| name(row) == wanted);
    let rows: Vec<_> = ROWS.iter().filter(is_wanted).collect();
    let picked: Option<u64> = variable("SEED");
    let seeds = picked.map_or(0..lives(2, 600), |seed| seed..seed + 1);
    let outcomes = each(&rows, |row| RowOutcome::of(row, seeds.clone()));
    // All of a row's lives, so that what is better is noticed too.
    let whole = seeds == (0..600);
    let (mut differ, mut in_a_hold) = (vec![], 0);
    for (row, outcome) in rows.iter().map(|row| name(row)).zip(&outcomes) {
        let known = KNOWN
            .iter()
            .find(|(name, ..)| *name == row && picked.is_none());
        let (wrong, known) = (outcome.wrong.len(), known.map_or(0, |(_, lives, _)| *lives));
        in_a_hold += outcome.in_a_hold;
        let (holds, kinds, of) = (
            outcome.in_a_hold,
            kinds(&outcome.wrong),
            seeds.clone().count(),
        );
        println!("{row}: {wrong} of {of} lives wrong, {holds} writes in a hold {kinds:?}");
        if wrong > known || whole && wrong < known {
            outcome.wrong.iter().take(1).for_each(show);
            differ.push(format!("{row}: {wrong}, not {known}"));
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
    let is_row = |known: &str| ROWS.iter().any(|row| name(row) == known);
    assert!(KNOWN.iter().all(|(name, ..)| is_row(name)));
}
