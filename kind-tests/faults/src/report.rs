//! What a person and a program read of a run.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::agents::Agents;
use crate::growth::{Growths, comparable};
use crate::ledger::{Kind, Violation};
use crate::options::Options;
use crate::world::World;

/// One line about how it goes.
pub fn progress(world: &World, what: &str) -> String {
    let ledger = &world.ledger;
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

/// What was found, with all that helps to understand it.
pub fn evidence(violation: &Violation, agents: &Agents, options: &Options) -> String {
    let Violation { at, kind, place, told, story } = violation;
    let mut text = format!(
        "\n!!! {:.1} s, {place}: {}: {told}\n    seed {}; what happened:\n",
        at.as_secs_f64(),
        kind.words(),
        options.seed
    );
    for line in story.iter().rev().take(70).rev() {
        text.push_str(&format!("    {line}\n"));
    }
    for replica in agents.all() {
        let told = replica.told(place);
        if !told.is_empty() {
            text.push_str(&format!("    --- the log of {} about it:\n", replica.name));
            told.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
        }
    }
    text
}

/// The table at the end.
pub fn table(world: &World, growths: &Growths, options: &Options) -> String {
    let ledger = &world.ledger;
    let mut text = format!("\nsoak of {:.0} s, seed {}\n\nWhat happened\n", ledger.start.elapsed().as_secs_f64(), options.seed);
    for (what, count) in ledger.counts() {
        text.push_str(&format!("  {count:>8}  {what}\n"));
    }
    if let Some([median, most, longest]) = ledger.latencies() {
        text.push_str(&format!(
            "\nClean outages: from the moment at which they are beyond doubt to all at 0: median {median} ms, 99 % {most} ms, longest {longest} ms\n"
        ));
    }
    let lag = world.disturbances.worst_lag().as_secs_f64();
    text.push_str(&format!(
        "\nThe longest that this machine let a thread of the soak or of an agent wait, within 2 s: {lag:.2} s\n"
    ));
    text.push_str("\nWhat the processes used at rest: first, last\n");
    if !comparable(growths) {
        text.push_str("  No leader was there at two rests: growth cannot be told.\n");
    }
    for ((name, _, leads), growth) in growths.iter().filter(|(_, growth)| growth.rests > 1) {
        let pair = |was: u64, is: u64| format!("{was} -> {is}");
        text.push_str(&format!(
            "  {name:10} {} rests{}: tasks {}, sockets {}, files {}, threads {}, memory {:?} KiB\n",
            growth.rests,
            if *leads { ", leading" } else { "" },
            pair(growth.first.tasks, growth.last.tasks),
            pair(growth.first.sockets, growth.last.sockets),
            pair(growth.first.files, growth.last.files),
            pair(growth.first.threads, growth.last.threads),
            growth.memory,
        ));
    }
    text.push_str("\nWhat must be 0\n");
    for (kind, _, words) in Kind::ALL {
        text.push_str(&format!("  {:>8}  {words}\n", ledger.total(kind)));
    }
    text
}

/// The same for programs, in one line.
pub fn json_line(world: &World, growths: &Growths, options: &Options, faults: Duration) -> String {
    let ledger = &world.ledger;
    let must: Map<String, Value> =
        Kind::ALL.map(|(kind, key, _)| (key.to_owned(), json!(ledger.total(kind)))).into_iter().collect();
    let used: Map<String, Value> = growths
        .iter()
        .filter(|(_, growth)| growth.rests > 1)
        .map(|((name, serial, leads), growth)| {
            let one = |vitals: crate::agents::vitals::Vitals| {
                json!({"tasks": vitals.tasks, "sockets": vitals.sockets, "files": vitals.files, "threads": vitals.threads,
                    "resident_kib": vitals.resident_kib})
            };
            let name = format!("{name} {serial}{}", if *leads { " leading" } else { "" });
            (name, json!({"rests": growth.rests, "first": one(growth.first), "last": one(growth.last), "memory": growth.memory}))
        })
        .collect();
    json!({
        "seed": options.seed,
        "shoots": world.shoots.len(),
        "real": options.real,
        "seconds_of_faults": faults.as_secs(),
        "passed": ledger.all() == 0,
        "growth_told": comparable(growths),
        "must_be_zero": must,
        "counts": ledger.counts(),
        "clean_answer_ms": ledger.latencies(),
        "worst_lag_ms": world.disturbances.worst_lag().as_millis() as u64,
        "used": used,
    })
    .to_string()
}
