//! Measures what the watchdog wins and what it costs: each subcommand is one benchmark, which ends
//! by itself and prints a table.
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
use fleet::{FleetPlan, baseline, growth, healthy, meltdown, start, weeder};
use race::away;
use testbed::with_bed;

/// Measures the watchdog.
#[derive(Parser)]
enum Benchmark {
    /// Requests, CPU and memory of healthy shoots
    Healthy {
        #[command(flatten)]
        plan: FleetPlan,
        /// Seconds for which they are measured
        #[arg(long, default_value_t = 190)]
        seconds: u64,
    },
    /// All shoots melt down at once, and come back
    Meltdown {
        #[command(flatten)]
        plan: FleetPlan,
        /// Seconds for which the prober has watched healthy shoots before
        #[arg(long, default_value_t = 360)]
        age: u64,
    },
    /// The cost of one shoot more
    #[command(mut_arg("shoots", |shoots| shoots.default_value("2000")))]
    Growth {
        #[command(flatten)]
        plan: FleetPlan,
        /// Seconds for which each size is measured
        #[arg(long, default_value_t = 114)]
        seconds: u64,
    },
    /// The weeder's start, and how soon it deletes
    Weeder {
        /// Number of shoots
        #[arg(long, default_value_t = 300)]
        shoots: usize,
        /// Seconds in which the requests of a start are counted; the Go original's were in 20
        #[arg(long, default_value_t = 20)]
        seconds: u64,
    },
    /// The binary's size, and how long it takes to be ready
    Start {
        #[command(flatten)]
        plan: FleetPlan,
        /// Number of starts
        #[arg(long, default_value_t = 11)]
        times: usize,
    },
    Race(race::RaceOptions),
    /// Kill the etcd under healthy shoots and start it again, round after round
    Away,
    /// Lists the leases of synthetic shoots and drops the answers.
    #[command(hide = true)]
    BareLoop(baseline::BaselineOptions),
}

fn main() -> anyhow::Result<()> {
    let benchmark = Benchmark::parse();
    with_bed(async |bed| match benchmark {
        Benchmark::Healthy { plan, seconds } => healthy::run(bed, plan, seconds).await,
        Benchmark::Meltdown { plan, age } => meltdown::run(bed, plan, age).await,
        Benchmark::Growth { plan, seconds } => growth::run(plan, seconds).await,
        Benchmark::Weeder { shoots, seconds } => weeder::run(bed, shoots, seconds).await,
        Benchmark::Start { plan, times } => start::run(bed, plan, times).await,
        Benchmark::Race(options) => race::run(bed, options).await,
        Benchmark::Away => away::run(bed).await,
        Benchmark::BareLoop(options) => baseline::run(options).await,
    })
}
