//! What the watchdog wins and what it costs, measured: each subcommand is one benchmark, which ends by itself, prints a table
//! that a person can read and, as its last line, the same as JSON. One more, `results`, writes the page of results of that.
//!
//! ```text
//!  light shoots (a process of their own) <--probes-- dependency-watchdog, the release binary --watches, writes--> seed
//!       ^                                                     |                                              (real, or in memory)
//!       '-- what was asked, how late           CPU and memory from /proc                     audit log: what was asked, and when --'
//! ```

mod beside;
mod course;
mod fleet;
mod race;
mod report;
mod results;
mod writes;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Measures the watchdog", disable_help_subcommand = true)]
struct Command {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    #[command(flatten)]
    Fleet(fleet::Benchmark),
    Race(race::Options),
    Away(race::away::Options),
    RaceMerge(race::Merge),
    Results(results::Options),
}

fn main() -> anyhow::Result<()> {
    // An error says that a provider is installed already, and there is only this one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match Command::parse().benchmark {
        Benchmark::Fleet(benchmark) => fleet::run(benchmark),
        Benchmark::Race(options) => race::run(options),
        Benchmark::Away(options) => race::away::run(options),
        Benchmark::RaceMerge(options) => race::merge(&options),
        Benchmark::Results(options) => results::run(&options),
    }
}
