//! What the watchdog wins and what it costs, measured: each subcommand is one benchmark, which ends
//! by itself, prints a table that a person can read and, as its last line, the same as JSON.
//!
//! ```text
//!  synthetic shoots <--probes-- dependency-watchdog, the release binary --watches, writes--> seed (real, or in memory)
//!    '-- requests                   CPU and memory from /proc          audit log: requests, and when --'
//! ```

mod fleet;
mod outage;
mod race;
mod report;

use clap::Parser;
use fleet::{baseline, growth, healthy, meltdown, start, weeder};
use race::away;
use testbed::with_bed;
use tokio::runtime::Runtime;

/// Measures the watchdog.
#[derive(Parser)]
enum Benchmark {
    /// Requests, CPU and memory of healthy shoots
    Healthy(healthy::HealthyOptions),
    /// All shoots melt down at once, and come back
    Meltdown(meltdown::MeltdownOptions),
    /// What one shoot more costs
    Growth(growth::GrowthOptions),
    /// The weeder's start, and how soon it deletes
    Weeder(weeder::WeederOptions),
    /// The binary's size, and how long it takes to be ready
    Start(start::StartOptions),
    Race(race::RaceOptions),
    Away(away::AwayOptions),
    /// Lists the leases of synthetic shoots and drops the answers.
    #[command(hide = true)]
    BareLoop(baseline::BaselineOptions),
}

fn main() -> anyhow::Result<()> {
    // An error says that a provider is installed already, and there is only this one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match Benchmark::parse() {
        Benchmark::Healthy(options) => with_bed(|bed| healthy::run(bed, options)),
        Benchmark::Meltdown(options) => with_bed(|bed| meltdown::run(bed, options)),
        Benchmark::Growth(options) => Runtime::new()?.block_on(growth::run(options)),
        Benchmark::Weeder(options) => with_bed(|bed| weeder::run(bed, options)),
        Benchmark::Start(options) => with_bed(|bed| start::run(bed, options)),
        Benchmark::Race(options) => with_bed(|bed| race::run(bed, options)),
        Benchmark::Away(options) => with_bed(|bed| away::run(bed, options)),
        Benchmark::BareLoop(options) => Runtime::new()?.block_on(baseline::run(options)),
    }
}
