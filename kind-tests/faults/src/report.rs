//! What a person and a program read of a run.

use serde_json::{Map, Value, json};

use crate::agents::Agents;
use crate::options::Options;
use crate::oracle::growth::Growths;
use crate::oracle::ledger::{Kind, Violation};
use crate::world::World;

/// One line about how it goes.
pub fn progress(world: &World, what: &str) -> String {
    let ledger = &world.oracle.ledger;
    let held = world.shoots.iter().filter(|shoot| shoot.record().dependents.values().any(|dependent| dependent.marker)).count();
    format!(
        "{:6.0} s  {what:8}  {} cuts, {} outages beyond doubt, {} held down now, {} writes, {} deletions, {} wrong or missed",
        ledger.start.elapsed().as_secs_f64(),
        ledger.counted("cuts"),
        ledger.counted("outages"),
        held,
        ledger.counted("writes"),
        ledger.counted("deletions"),
        ledger.all(),
    )
}

/// Prints what was found since the last time, with all that helps to understand it.
pub fn print_found(world: &World, agents: &Agents, seed: u64) {
    for Violation { at, kind, place, told, story } in world.oracle.ledger.to_print() {
        println!("\n!!! {:.1} s, {place}: {}: {told}\n    seed {seed}; what happened:", at.as_secs_f64(), kind.words());
        for line in &story[story.len().saturating_sub(70)..] {
            println!("    {line}");
        }
        for replica in agents.all() {
            let lines = replica.told(&place);
            if !lines.is_empty() {
                println!("    --- the log of {} about it:\n    {}", replica.name, lines.join("\n    "));
            }
        }
        println!();
    }
}

/// What happened, what was found, and what the processes used after each round.
pub fn summary(world: &World, growths: &Growths, options: &Options) -> Value {
    let ledger = &world.oracle.ledger;
    let must: Map<String, Value> =
        Kind::ALL.map(|(kind, key, _)| (key.to_owned(), json!(ledger.total(kind)))).into_iter().collect();
    let used = growths.comparable().map(|((name, serial, leads), times)| {
        let memory: Vec<_> = times.iter().map(|used| used["resident_kib"]).collect();
        let name = format!("{name} {serial}{}", if *leads { " leading" } else { "" });
        (name, json!({"rests": times.len(), "first": times.first(), "last": times.last(), "memory": memory}))
    });
    json!({
        "seed": options.seed,
        "shoots": world.shoots.len(),
        "real": options.real,
        "seconds_of_faults": options.duration.as_secs(),
        "passed": ledger.all() == 0,
        // Of a process that led after two rounds.
        "growth_told": growths.are_told(),
        "must_be_zero": must,
        "counts": ledger.counts(),
        // From the moment at which a clean outage is beyond doubt to all at 0: the median, 99 %, the longest.
        "clean_answer_ms": ledger.latencies(),
        // The longest that this machine let a thread of the soak or of an agent wait, within 2 s.
        "worst_lag_ms": faults::lock(&world.oracle.disturbances).worst_lag.as_millis() as u64,
        "used": used.collect::<Map<String, Value>>(),
    })
}
