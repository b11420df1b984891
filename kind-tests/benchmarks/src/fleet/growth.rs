//! What one shoot more costs, from a hundred to thousands.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use testbed::agent::{Agent, Kind};
use testbed::api::{Authority, MemoryApi, Options as Api};
use testbed::eventually;
use tokio::time::sleep;

use super::fill;
use super::light::{Counts, LightShoots, Plan};
use super::usage::Usage;
use crate::report::{Goal, Report, percentile, progress};

/// By how much, in percent, the cost of one shoot more may differ from its mean between two sizes.
const FLAT: f64 = 15.0;

/// How far it grows.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Numbers of shoots, ascending.
    #[arg(long, value_delimiter = ',', default_value = "100,300,1000,2000")]
    sizes: Vec<usize>,
    /// Nodes in each shoot.
    #[arg(long, default_value_t = 100)]
    nodes: usize,
    /// nodeMonitorGracePeriod in seconds.
    #[arg(long, default_value_t = 40)]
    grace: u32,
    /// For how many seconds each size is measured, a multiple of the 19 s in which each shoot is probed once; small ones twice as
    /// long, for they use little.
    #[arg(long, default_value_t = 57)]
    seconds: u64,
}

/// What a size costs.
struct Cost {
    shoots: usize,
    probes: f64,
    /// Seconds of CPU in a second.
    cpu: f64,
    resident: f64,
    most: f64,
    bytes: f64,
    late: Vec<f64>,
}

/// Runs it.
pub async fn run(options: Options) -> Result<()> {
    let Options { sizes, nodes, grace, seconds } = options;
    ensure!(sizes.is_sorted() && sizes.len() > 1, "sizes are to be ascending, and more than one");
    let largest = sizes.last().copied().unwrap_or_default();
    let mut light = LightShoots::start(Plan { shoots: largest, nodes, grace }).await?;
    let mut costs = Vec::new();
    for shoots in sizes {
        let factor = if shoots < largest / 4 { 2 } else { 1 };
        costs.push(size(&mut light, shoots, seconds * factor).await?);
    }

    let what =
        format!("growth to {largest} healthy shoots of {nodes} nodes; seed and shoots in memory, in processes of their own");
    let mut report = Report::new("growth", what);
    for cost in &mut costs {
        let Cost { shoots, probes, cpu, resident, most, bytes, late } = cost;
        late.sort_by(f64::total_cmp);
        let mut figure = |key: &str, what: &str, value: f64, unit| {
            report.figure(&format!("{key}_{shoots}"), format!("{shoots} shoots: {what}"), value, unit);
        };
        figure("probes", "probes per second", *probes, "/s");
        figure("cpu", "CPU, share of a core", *cpu * 100.0, "%");
        figure("resident", "resident memory", *resident, "MiB");
        figure("most", "high-water mark of memory", *most, "MiB");
        figure("traffic", "answers of the shoots", *bytes / 1e6, "MB/s");
        figure("late_p50", "a probe later than its schedule, median", percentile(late, 0.5), "s");
        figure("late_p99", "a probe later than its schedule, 99th percentile", percentile(late, 0.99), "s");
        figure("late_max", "a probe later than its schedule, worst", percentile(late, 1.0), "s");
    }
    let slopes = |of: fn(&Cost) -> f64| -> Vec<(String, f64)> {
        let slope = |pair: &[Cost]| (of(&pair[1]) - of(&pair[0])) / (pair[1].shoots - pair[0].shoots) as f64;
        costs.windows(2).map(|pair| (format!("{}_to_{}", pair[0].shoots, pair[1].shoots), slope(pair))).collect()
    };
    for (key, what, unit, slopes) in [
        ("cpu", "CPU of one shoot more, in ms per minute", "ms", slopes(|cost| cost.cpu * 60_000.0)),
        ("memory", "memory of one shoot more", "KiB", slopes(|cost| cost.resident * 1024.0)),
    ] {
        for (between, slope) in &slopes {
            report.figure(&format!("{key}_{between}"), format!("{what}, {}", between.replace('_', " ")), *slope, unit);
        }
        let (low, high) = slopes.iter().fold((f64::MAX, 0.0_f64), |(low, high), (_, slope)| (low.min(*slope), high.max(*slope)));
        // Half of the distance between the extremes, as a share of their middle.
        let off = (high - low) / (high + low) * 100.0;
        report.measured_against(&format!("{key}_flat"), format!("{what}: how far off its mean"), off, "%", Goal::AtMost(FLAT));
    }
    report.print();
    Ok(())
}

async fn size(light: &mut LightShoots, shoots: usize, seconds: u64) -> Result<Cost> {
    progress(format!("{shoots} shoots: filling a seed in memory"));
    let api = MemoryApi::start(&Authority::new()?, Api::default()).await?;
    for number in 0..shoots {
        for (_, object) in fill::shoot(light, number, None) {
            api.store().apply(object).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        }
    }
    let config = light.plan.short_config()?;
    let prober = Agent::alone(Kind::Prober, &api.kubeconfig(&Api::default().admin_token), config.as_deref(), &[])?;
    let start = light.counts().await?;
    progress(format!("{shoots} shoots: waiting until each has been probed twice"));
    eventually("each shoot has been probed twice", Duration::from_secs(180), async || {
        let counts = light.counts().await?;
        let few = counts.iter().zip(&start).take(shoots).filter(|(now, then)| now.leases < then.leases + 2).count();
        ensure!(few == 0, "{few} have not");
        Ok(())
    })
    .await?;
    progress(format!("{shoots} shoots: measuring for {seconds} s"));
    light.lateness().await?;
    let (before, used) = (Counts::sum(&light.counts().await?), Usage::of(prober.id())?);
    sleep(Duration::from_secs(seconds)).await;
    let (after, usage) = (Counts::sum(&light.counts().await?), Usage::of(prober.id())?);
    let (late, counts) = (light.lateness().await?, after.since(&before));
    ensure!(counts.leases >= shoots as u64, "{} probes are too few", counts.leases);
    ensure!(counts.requests == counts.leases && counts.connections == 0, "more than one request a probe: {counts:?}");
    ensure!(prober.terminate().await?.success(), "the prober did not end well");
    api.shutdown().await;
    let per_second = 1.0 / seconds as f64;
    Ok(Cost {
        shoots,
        probes: counts.leases as f64 * per_second,
        cpu: (usage.cpu - used.cpu).as_secs_f64() * per_second,
        resident: usage.resident,
        most: usage.most,
        bytes: counts.bytes as f64 * per_second,
        late,
    })
}
