//! What a seed full of healthy shoots costs: requests, CPU, memory.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use testbed::agent::{Agent, Kind};
use testbed::manifests::PROBER_USER;
use testbed::{Bed, eventually};
use tokio::time::sleep;

use super::bare::BareLoop;
use super::fill::{Filling, fill};
use super::light::{Counts, LightShoots, Plan};
use super::usage::Usage;
use crate::report::{Goal, Report, progress};

/// The Go original's CPU time per 1,000 probes of 100 nodes, in seconds, and its resident memory with 300 shoots, in MiB, measured
/// on two cores.
const ORIGINAL_CPU: f64 = 22.3;
const ORIGINAL_MEMORY: f64 = 470.0;

/// How the healthy fleet is.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    plan: Plan,
    /// Secrets on the seed that are none of the prober's business.
    #[arg(long, default_value_t = 20_000)]
    foreign_secrets: usize,
    /// For how many seconds it is measured; a multiple of the 19 s in which each shoot is probed once.
    #[arg(long, default_value_t = 190)]
    seconds: u64,
}

/// Runs it.
pub async fn run(bed: &'static Bed, options: Options) -> Result<()> {
    let Options { plan, foreign_secrets, seconds } = options;
    let (shoots, nodes) = (plan.shoots, plan.nodes);
    progress(format!("starting a seed, {shoots} light shoots of {nodes} nodes, and the same once more for the bare loop"));
    let seed = bed.own_seed().await?;
    let mut light = LightShoots::start(plan.clone()).await?;
    let mut others = LightShoots::start(plan.clone()).await?;
    fill(seed.api(), &light, &Filling { shoots, foreign_secrets, pods_take: None }).await?;

    let config = plan.short_config()?;
    let prober = Agent::alone(Kind::Prober, &seed.prober_kubeconfig().await?, config.as_deref(), &[])?;
    let period = Duration::from_micros(u64::try_from(plan.grace() / 2)?) - Duration::from_secs(1);
    let bare = BareLoop::start(&others, period).await?;
    progress("waiting until each shoot has been probed twice");
    for server in [&mut light, &mut others] {
        eventually("each shoot has been probed twice", Duration::from_secs(180), async || {
            let counts = server.counts().await?;
            let few = counts.iter().filter(|counts| counts.leases < 2).count();
            ensure!(few == 0, "{few} have not");
            Ok(())
        })
        .await?;
    }

    progress(format!("measuring for {seconds} s"));
    light.lateness().await?;
    let mark = seed.plane().mark();
    let (before, bare_before) = (light.counts().await?, others.counts().await?);
    let (used, bare_used) = (Usage::of(prober.id())?, bare.usage()?);
    sleep(Duration::from_secs(seconds)).await;
    let (usage, bare_usage) = (Usage::of(prober.id())?, bare.usage()?);
    let (after, bare_after) = (light.counts().await?, others.counts().await?);
    let mut late = light.lateness().await?;
    let asked = seed.asked_since(&mark);

    let counts = Counts::sum(&after).since(&Counts::sum(&before));
    let probes = counts.leases as f64;
    let bare_probes = Counts::sum(&bare_after).since(&Counts::sum(&bare_before)).leases as f64;
    ensure!(
        probes >= shoots as f64 && bare_probes >= shoots as f64,
        "{probes} probes and {bare_probes} bare requests are too few"
    );
    ensure!(asked.iter().all(|asked| asked.user == PROBER_USER && asked.code < 400), "{asked:#?}");
    let election = asked.iter().filter(|asked| asked.resource == "leases" && asked.namespace == "garden").count();
    // A watch ends by itself after 225 s and begins anew, however many shoots there are.
    let watches = asked.iter().filter(|asked| asked.verb == "watch").count();
    let seed_requests = (asked.len() - election - watches) as f64;
    let per_1000 = |cpu: Duration, probes: f64| cpu.as_secs_f64() / probes * 1000.0;
    let cpu = per_1000(usage.cpu - used.cpu, probes);
    let bare_cpu = per_1000(bare_usage.cpu - bare_used.cpu, bare_probes);

    let what = format!(
        "{shoots} healthy shoots of {nodes} nodes for {seconds} s; {} Machines, {foreign_secrets} foreign Secrets on a real seed",
        shoots * nodes
    );
    let mut report = Report::new("healthy", what);
    report.figure("probes", "probes", probes, "");
    report.measured_against(
        "requests",
        "requests on the shoot per probe",
        counts.requests as f64 / probes,
        "",
        Goal::Exactly(1.0),
    );
    report.measured_against(
        "connections",
        "new connections on the shoot per probe",
        counts.connections as f64 / probes,
        "",
        Goal::Exactly(0.0),
    );
    report.measured_against("seed_requests", "requests on the seed per probe", seed_requests / probes, "", Goal::Exactly(0.0));
    report.figure("election", "requests of the election per second", election as f64 / seconds as f64, "");
    report.figure("watches", "watches that ended and began anew", watches as f64, "");
    report.figure("bytes", "an answer's size", counts.bytes as f64 / probes, "B");
    report.figure("cpu_per_1000", "CPU per 1,000 probes, all of the process", cpu, "s");
    report.figure("bare_cpu_per_1000", "the same of a bare loop beside it", bare_cpu, "s");
    report.measured_against("cpu_ratio", "the first by the second", cpu / bare_cpu, "", Goal::AtMost(1.5));
    report.measured_against("cpu_reference", "the Go original's CPU by ours", ORIGINAL_CPU / cpu, "", Goal::AtLeast(20.0));
    report.figure("resident", "resident memory", usage.resident, "MiB");
    report.measured_against("most", "high-water mark of memory", usage.most, "MiB", Goal::AtMost(50.0));
    report.figure("memory_reference", "the Go original's resident memory by ours", ORIGINAL_MEMORY / usage.resident, "");
    report.spread("late", "a probe later than its schedule", &mut late, "s", None);
    report.print();
    ensure!(prober.terminate().await?.success(), "the prober did not end well");
    Ok(())
}
