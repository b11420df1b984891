//! The cost of a seed full of healthy shoots: requests, CPU, memory.

use anyhow::{Result, ensure};
use testbed::{Testbed, start_prober};
use tokio::try_join;

use super::fill::{FOREIGN_SECRETS, fill_seed};
use super::synthetic::{Measured, SyntheticShoots};
use super::{FleetPlan, baseline, end, prober_config};
use crate::report::BenchmarkReport;

/// The Go original's CPU time per 1,000 probes of 100 nodes, in seconds, and its resident memory
/// with 300 shoots, in MiB, measured on two cores.
const ORIGINAL_CPU: f64 = 22.3;
const ORIGINAL_MEMORY: f64 = 470.0;

/// Runs it.
pub async fn run(bed: &'static Testbed, plan: FleetPlan, seconds: u64) -> Result<()> {
    let FleetPlan { shoots, nodes, .. } = plan;
    let seed = bed.own_seed().await?;
    let ours = fill_seed(seed.api(), plan).await?;
    // The same once more for the bare loop.
    let others = SyntheticShoots::start(plan).await?;

    let prober = start_prober(&seed, prober_config(plan.grace)).await?;
    let bare = baseline::start(&others)?;
    try_join!(ours.probed(2, shoots), others.probed(2, shoots))?;
    let mark = seed.plane().mark();
    let (ours, bare) = try_join!(
        ours.measure(seconds, prober.id()),
        others.measure(seconds, bare.id())
    )?;
    let mut asked = seed.asked_since(&mark);
    end(prober).await?;

    ensure!(asked.iter().all(|asked| asked.code < 400), "{asked:#?}");
    // The election costs the same however many shoots there are, as do watches, which end by
    // themselves after 225 s and begin again. Rehearsals are a matter of hours, and of no probe.
    asked
        .retain(|asked| asked.resource != "leases" && asked.verb != "watch" && !asked.is_dry_run());
    let mut report = BenchmarkReport::default();
    report.add("probes", ours.probes);
    let mut per_probe = |what, count: f64, goal| report.at_most(what, count / ours.probes, goal);
    per_probe("requests on the shoot per probe", ours.requests, 1.0);
    let connections = "new connections on the shoot per probe";
    per_probe(connections, ours.connections, 0.0);
    per_probe("requests on the seed per probe", asked.len() as f64, 0.0);
    let [cpu, bare_cpu] = [&ours, &bare].map(|of: &Measured| of.cpu / of.probes * 1000.0);
    report.add("CPU per 1,000 probes, all of the process, s", cpu);
    report.add("the same of a bare loop beside it, s", bare_cpu);
    report.at_most("the first by the second", cpu / bare_cpu, 1.5);
    report.at_least("the Go original's CPU by ours", ORIGINAL_CPU / cpu, 20.0);
    report.at_most("high-water mark of memory, MiB", ours.usage.most, 50.0);
    let by_ours = ORIGINAL_MEMORY / ours.usage.resident;
    report.add("the Go original's resident memory by ours", by_ours);
    let (machines, secrets) = (shoots * nodes, shoots * FOREIGN_SECRETS);
    report.print(&format!(
        "{shoots} healthy shoots of {nodes} nodes for {seconds} s; {machines} Machines, {secrets} foreign Secrets on a real seed"
    ));
    Ok(())
}
