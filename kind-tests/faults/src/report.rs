//! What a person and a program read of a run.

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::agents::Agents;
use crate::options::SoakOptions;
use crate::oracle::growth::Growths;
use crate::oracle::ledger::ViolationKind;
use crate::world::SoakWorld;

/// One line about how it goes.
pub fn progress(world: &SoakWorld, what: &str) -> String {
    let held = world
        .shoots
        .iter()
        .filter(|shoot| {
            shoot
                .record()
                .dependents
                .values()
                .any(|dependent| dependent.marker)
        })
        .count();
    let seconds = world.oracle.ledger.start.elapsed().as_secs_f64();
    let pages = world.oracle.ledger.pages.lock();
    let counted = |what| pages.counts.get(what).copied().unwrap_or_default();
    let [cuts, outages, writes, deletions] =
        ["cuts", "outages", "writes", "deletions"].map(counted);
    let wrong = pages.all();
    format!(
        "{seconds:6.0} s  {what:8}  {cuts} cuts, {outages} outages beyond doubt, {held} held down now, {writes} writes, \
         {deletions} deletions, {wrong} wrong or missed"
    )
}

/// Prints what was found since the last time, with all that helps to understand it.
pub fn print_found(world: &SoakWorld, agents: &Agents, seed: u64) {
    let evidence = std::mem::take(&mut world.oracle.ledger.pages.lock().evidence);
    for (place, text) in evidence {
        println!("\n!!! seed {seed}, {text}");
        for replica in &agents.0 {
            println!(
                "    --- the log of {} about it:\n{}",
                replica.name,
                replica.logged(&place)
            );
        }
    }
}

/// What happened, what was found, and what each process used that was measured more than once, at
/// first and at last.
pub fn summary(world: &SoakWorld, growths: &Growths, options: &SoakOptions) -> Value {
    let pages = world.oracle.ledger.pages.lock();
    let must = ViolationKind::value_variants().iter().filter_map(|kind| {
        let name = kind.to_possible_value()?.get_name().to_owned();
        Some((name, json!(pages.total(*kind))))
    });
    let used = growths.comparable().map(|((name, serial, leads), times)| {
        let name = format!("{name} {serial}{}", if *leads { " leading" } else { "" });
        (name, json!({"first": times.first(), "last": times.last()}))
    });
    json!({
        "seed": options.seed,
        "shoots": world.shoots.len(),
        "real": options.real,
        "seconds_of_faults": options.duration.as_secs(),
        "passed": pages.all() == 0,
        "must_be_zero": must.collect::<Map<String, Value>>(),
        "counts": pages.counts,
        // From the moment at which a clean outage is beyond doubt to all at 0: the median, 99 %,
        // the longest.
        "clean_answer_ms": pages.slowest(),
        // The longest that this machine let a thread of the soak or of an agent wait, within 2 s.
        "worst_lag_ms": world.oracle.disturbances.lock().worst_lag.as_millis() as u64,
        "used": used.collect::<Map<String, Value>>(),
    })
}
