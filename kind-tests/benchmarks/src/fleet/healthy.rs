//! What a seed full of healthy shoots costs: requests, CPU, memory.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use testbed::Bed;
use tokio::try_join;

use super::bare;
use super::fill::filled;
use super::light::{FleetPlan, LightShoots, Measured};
use crate::report::BenchmarkReport;
use crate::report::Goal::{AtLeast, AtMost, Exactly};

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
pub async fn run(bed: &'static Bed, options: HealthyOptions) -> Result<()> {
    let HealthyOptions {
        plan,
        foreign_secrets,
        seconds,
    } = options;
    let (shoots, nodes) = (plan.shoots, plan.nodes);
    let seed = bed.own_seed().await?;
    let mut light = filled(seed.api(), plan.clone(), foreign_secrets, None).await?;
    // The same once more for the bare loop.
    let mut others = LightShoots::start(plan.clone()).await?;

    let prober = super::prober(&seed.prober_kubeconfig().await?, &plan)?;
    let period = (plan.grace() / 2).to_std()? - Duration::from_secs(1);
    let bare = bare::start(&others, period)?;
    try_join!(light.probed(2, shoots), others.probed(2, shoots))?;
    let mark = seed.plane().mark();
    let (ours, bare) = try_join!(
        light.measure(shoots, seconds, prober.id()),
        others.measure(shoots, seconds, bare.id())
    )?;
    let asked = seed.asked_since(&mark);
    super::end(prober).await?;

    ensure!(asked.iter().all(|asked| asked.code < 400), "{asked:#?}");
    let election = asked
        .iter()
        .filter(|asked| asked.resource == "leases" && asked.namespace == "garden")
        .count();
    // A watch ends by itself after 225 s and begins again, however many shoots there are.
    let watches = asked.iter().filter(|asked| asked.verb == "watch").count();
    let seed_requests = (asked.len() - election - watches) as f64;
    let per_1000 = |of: &Measured| of.usage.cpu.as_secs_f64() / of.counts.probes as f64 * 1000.0;
    let (cpu, bare_cpu) = (per_1000(&ours), per_1000(&bare));
    let Measured {
        counts,
        usage,
        late,
    } = ours;
    let probes = counts.probes as f64;
    let per_probe = |count: u64| count as f64 / probes;

    let what = format!(
        "{shoots} healthy shoots of {nodes} nodes for {seconds} s; {} Machines, {foreign_secrets} foreign Secrets on a real seed",
        shoots * nodes
    );
    let mut report = BenchmarkReport::new("healthy", what);
    report.rows([
        ("probes", "probes", probes, "", None),
        (
            "requests",
            "requests on the shoot per probe",
            per_probe(counts.requests),
            "",
            Some(Exactly(1.0)),
        ),
        (
            "connections",
            "new connections on the shoot per probe",
            per_probe(counts.connections),
            "",
            Some(Exactly(0.0)),
        ),
        (
            "seed_requests",
            "requests on the seed per probe",
            seed_requests / probes,
            "",
            Some(Exactly(0.0)),
        ),
        (
            "election",
            "requests of the election per second",
            election as f64 / seconds as f64,
            "",
            None,
        ),
        (
            "watches",
            "watches that ended and began anew",
            watches as f64,
            "",
            None,
        ),
        (
            "bytes",
            "an answer's size",
            per_probe(counts.bytes),
            "B",
            None,
        ),
        (
            "cpu_per_1000",
            "CPU per 1,000 probes, all of the process",
            cpu,
            "s",
            None,
        ),
        (
            "bare_cpu_per_1000",
            "the same of a bare loop beside it",
            bare_cpu,
            "s",
            None,
        ),
        (
            "cpu_ratio",
            "the first by the second",
            cpu / bare_cpu,
            "",
            Some(AtMost(1.5)),
        ),
        (
            "cpu_reference",
            "the Go original's CPU by ours",
            ORIGINAL_CPU / cpu,
            "",
            Some(AtLeast(20.0)),
        ),
        ("resident", "resident memory", usage.resident, "MiB", None),
        (
            "most",
            "high-water mark of memory",
            usage.most,
            "MiB",
            Some(AtMost(50.0)),
        ),
        (
            "memory_reference",
            "the Go original's resident memory by ours",
            ORIGINAL_MEMORY / usage.resident,
            "",
            None,
        ),
    ]);
    report.spread("late", "a probe later than its schedule", &late, None);
    report.print()
}
