//! What a seed full of healthy shoots costs: requests, CPU, memory.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use testbed::Testbed;
use testbed::audit::Asked;
use testbed::usage::Usage;
use tokio::try_join;

use super::fill::fill_seed;
use super::synthetic::{FleetPlan, Measured, SyntheticShoots};
use super::{baseline, end, start_prober};
use crate::report::BenchmarkReport;

/// The Go original's CPU time per 1,000 probes of 100 nodes, in seconds, and its resident memory
/// with 300 shoots, in MiB, measured on two cores.
const ORIGINAL_CPU: f64 = 22.3;
const ORIGINAL_MEMORY: f64 = 470.0;

/// How the healthy fleet is.
#[derive(Args, Clone, Debug)]
pub struct HealthyOptions {
    #[command(flatten)]
    plan: FleetPlan,
    /// Secrets on the seed that are none of the prober's business.
    #[arg(long, default_value_t = 20_000)]
    foreign_secrets: usize,
    /// For how many seconds it is measured; a multiple of the 19 s in which each shoot is probed
    /// once.
    #[arg(long, default_value_t = 190)]
    seconds: u64,
}

/// Runs it.
pub async fn run(bed: &'static Testbed, options: HealthyOptions) -> Result<()> {
    let HealthyOptions {
        plan,
        foreign_secrets,
        seconds,
    } = options;
    let FleetPlan { shoots, nodes, .. } = plan;
    let seed = bed.own_seed().await?;
    let ours = fill_seed(seed.api(), plan.clone(), foreign_secrets, None).await?;
    // The same once more for the bare loop.
    let others = SyntheticShoots::start(plan.clone()).await?;

    let prober = start_prober(&seed.prober_kubeconfig().await?, &plan)?;
    let period = (plan.grace() / 2).to_std()? - Duration::from_secs(1);
    let bare = baseline::start(&others, period)?;
    try_join!(ours.probed(2, shoots), others.probed(2, shoots))?;
    let mark = seed.plane().mark();
    let (ours, bare) = try_join!(
        ours.measure(shoots, seconds, prober.id()),
        others.measure(shoots, seconds, bare.id())
    )?;
    let asked = seed.asked_since(&mark);
    end(prober).await?;

    ensure!(asked.iter().all(|asked| asked.code < 400), "{asked:#?}");
    let count = |which: fn(&&Asked) -> bool| asked.iter().filter(which).count() as f64;
    let election = count(|asked| asked.resource == "leases" && asked.namespace == "garden");
    // A watch ends by itself after 225 s and begins again, however many shoots there are.
    let watches = count(|asked| asked.verb == "watch");
    let probes = ours.probes as f64;
    let per_probe = |count: u64| count as f64 / probes;
    let per_1000 = |of: &Measured| of.cpu / of.probes as f64 * 1000.0;
    let (cpu, bare_cpu) = (per_1000(&ours), per_1000(&bare));
    let Usage { resident, most, .. } = ours.usage;

    let what = format!(
        "{shoots} healthy shoots of {nodes} nodes for {seconds} s; {} Machines, {foreign_secrets} foreign Secrets on a real seed",
        shoots * nodes
    );
    let mut report = BenchmarkReport::new("healthy", what);
    report.add([
        ("probes", probes),
        ("requests", per_probe(ours.requests)),
        ("connections", per_probe(ours.connections)),
        (
            "seed_requests",
            (asked.len() as f64 - election - watches) / probes,
        ),
        ("election", election / seconds as f64),
        ("watches", watches),
        ("bytes", per_probe(ours.bytes)),
        ("cpu_per_1000", cpu),
        ("bare_cpu_per_1000", bare_cpu),
        ("cpu_ratio", cpu / bare_cpu),
        ("cpu_reference", ORIGINAL_CPU / cpu),
        ("resident", resident),
        ("most", most),
        ("memory_reference", ORIGINAL_MEMORY / resident),
    ]);
    report.spread("late", &ours.late, true);
    report.print()
}
