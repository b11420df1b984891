//! The soak: rounds of faults, each followed by an idle time.
//!
//! In the first half agents are also killed and suspended, and the seed may fail for longer than a
//! leader can bear. In the second half the processes live on. What a process uses after its first
//! round is compared with what it uses after its last.

use anyhow::{Result, ensure};
use testbed::log::tail;

use crate::agents::Agents;
use crate::idle::{become_idle, measure};
use crate::life::Life;
use crate::options::SoakOptions;
use crate::oracle::leaks::{MeasuredUsage, leaks};
use crate::oracle::violations::ViolationKind;
use crate::world::SoakWorld;

/// So many of the last lines of a log about a shoot are shown.
const LINES: usize = 25;

/// Runs it.
///
/// # Errors
/// When something was found, or the soak itself failed.
pub async fn run(options: &SoakOptions) -> Result<()> {
    println!("soak: {options:?}");
    let mut life = Life::begin(options.seed, options.shoots, 3, Some(&options.binary)).await?;
    let mut usage = MeasuredUsage::new();
    for number in 1..=options.rounds {
        let ends_agents = options.rounds == 1 || number <= options.rounds / 2;
        let time = options.duration / options.rounds;
        life.round(number, time, ends_agents).await?;
        become_idle(&life.world).await;
        measure(&life, &mut usage).await?;
        print_report(&life.world, &life.agents);
    }
    println!("used at first and at last: {usage:?}");
    for (name, text) in leaks(&usage) {
        let violations = &life.world.oracle.violations;
        violations.found(ViolationKind::Leaks, name, &text);
    }
    let agents = life.agents.clone();
    let world = life.end().await?;
    print_report(&world, &agents);
    let nothing_found = world.oracle.violations.totals().found.is_empty();
    ensure!(nothing_found, "seed {}", options.seed);
    Ok(())
}

/// Prints what was found since the last time, with all that helps to understand it, and how it goes.
fn print_report(world: &SoakWorld, agents: &Agents) {
    let mut totals = world.oracle.violations.totals();
    for (place, text) in std::mem::take(&mut totals.evidence) {
        println!("\n!!! {text}");
        for replica in &agents.0 {
            let (name, log) = (replica.name, tail(&replica.log(), LINES, &place));
            println!("    --- the log of {name} about it:\n{log}");
        }
    }
    println!("{:?}, wrong: {:?}", totals.counts, totals.found);
}
