//! What a person and a program read of a run.

use std::sync::Arc;

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::agents::Agents;
use crate::options::SoakOptions;
use crate::oracle::leaks::MeasuredUsage;
use crate::oracle::violations::ViolationKind;
use crate::shoot::SoakShoot;
use crate::world::SoakWorld;

/// One line about how it goes.
pub fn progress(world: &SoakWorld, what: &str) -> String {
    let is_held = |shoot: &&Arc<SoakShoot>| {
        let record = shoot.record();
        record.dependents.values().any(|dependent| dependent.marker)
    };
    let held = world.shoots.iter().filter(is_held).count();
    let violations = &world.oracle.violations;
    let seconds = violations.start.elapsed().as_secs_f64();
    let totals = violations.totals();
    let counted = |what| totals.counts.get(what).copied().unwrap_or_default();
    let [cuts, outages, writes, deletions] =
        ["cuts", "outages", "writes", "deletions"].map(counted);
    let wrong = totals.all();
    format!(
        "{seconds:6.0} s  {what:8}  {cuts} cuts, {outages} outages beyond doubt, {held} held down now, {writes} writes, \
         {deletions} deletions, {wrong} wrong or missed"
    )
}

/// Prints what was found since the last time, with all that helps to understand it.
pub fn print_found(world: &SoakWorld, agents: &Agents, seed: u64) {
    let evidence = std::mem::take(&mut world.oracle.violations.totals().evidence);
    for (place, text) in evidence {
        println!("\n!!! seed {seed}, {text}");
        for replica in &agents.0 {
            let (name, log) = (replica.name, replica.logged(&place));
            println!("    --- the log of {name} about it:\n{log}");
        }
    }
}

/// What happened, what was found, and what each process used that was measured more than once, at
/// first and at last.
pub fn summary(world: &SoakWorld, usage: &MeasuredUsage, options: &SoakOptions) -> Value {
    let totals = world.oracle.violations.totals();
    let must = ViolationKind::value_variants().iter().filter_map(|kind| {
        let name = kind.to_possible_value()?.get_name().to_owned();
        Some((name, json!(totals.total(*kind))))
    });
    let used = usage
        .comparable()
        .map(|((name, serial, leads), first, last)| {
            let name = format!("{name} {serial}{}", if leads { " leading" } else { "" });
            (name, json!({"first": first, "last": last}))
        });
    json!({
        "seed": options.seed,
        "shoots": world.shoots.len(),
        "seconds_of_faults": options.duration.as_secs(),
        "passed": totals.all() == 0,
        "must_be_zero": must.collect::<Map<String, Value>>(),
        "counts": totals.counts,
        // From the moment at which a clean outage is beyond doubt to all at 0: the median, 99 %,
        // the longest.
        "clean_answer_ms": totals.slowest(),
        // The longest that this machine let a thread of the soak or of an agent wait, within 2 s.
        "worst_lag_ms": world.oracle.disturbances().worst_lag.as_millis() as u64,
        "used": used.collect::<Map<String, Value>>(),
    })
}
