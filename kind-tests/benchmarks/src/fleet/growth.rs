//! What one shoot more costs, from a hundred to thousands.

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use testbed::api::{MemoryApi, Options as Api};
use testbed::authority::Authority;
use testbed::usage::Usage;

use super::fill;
use super::light::{LightShoots, Measured, Plan};
use crate::report::{Goal, Report, progress};

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
    seconds: u64,
    measured: Measured,
}

impl Cost {
    /// Seconds of CPU in a second.
    fn cpu(&self) -> f64 {
        self.measured.cpu.as_secs_f64() / self.seconds as f64
    }
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
    for cost in &costs {
        let Cost { shoots, seconds, measured: Measured { counts, late, usage, .. } } = cost;
        let per_second = |count: u64| count as f64 / *seconds as f64;
        for (key, what, value, unit) in [
            ("probes", "probes per second", per_second(counts.probes), "/s"),
            ("cpu", "CPU, share of a core", cost.cpu() * 100.0, "%"),
            ("resident", "resident memory", usage.resident, "MiB"),
            ("most", "high-water mark of memory", usage.most, "MiB"),
            ("traffic", "answers of the shoots", per_second(counts.bytes) / 1e6, "MB/s"),
            ("late_p50", "a probe later than its schedule, median", late.at(0.5), "s"),
            ("late_p99", "a probe later than its schedule, 99th percentile", late.at(0.99), "s"),
            ("late_max", "a probe later than its schedule, worst", late.at(1.0), "s"),
        ] {
            report.add(&format!("{key}_{shoots}"), &format!("{shoots} shoots: {what}"), value, unit, None);
        }
    }
    let slopes = |of: fn(&Cost) -> f64| -> Vec<(String, f64)> {
        let slope = |pair: &[Cost]| (of(&pair[1]) - of(&pair[0])) / (pair[1].shoots - pair[0].shoots) as f64;
        costs.windows(2).map(|pair| (format!("{}_to_{}", pair[0].shoots, pair[1].shoots), slope(pair))).collect()
    };
    for (key, what, unit, slopes) in [
        ("cpu", "CPU of one shoot more, in ms per minute", "ms", slopes(|cost| cost.cpu() * 60_000.0)),
        ("memory", "memory of one shoot more", "KiB", slopes(|cost| cost.measured.usage.resident * 1024.0)),
    ] {
        for (between, slope) in &slopes {
            report.add(&format!("{key}_{between}"), &format!("{what}, {}", between.replace('_', " ")), *slope, unit, None);
        }
        let (low, high) = slopes.iter().fold((f64::MAX, 0.0_f64), |(low, high), (_, slope)| (low.min(*slope), high.max(*slope)));
        // Half of the distance between the extremes, as a share of their middle.
        let off = (high - low) / (high + low) * 100.0;
        report.add(&format!("{key}_flat"), &format!("{what}: how far off its mean"), off, "%", Some(Goal::AtMost(FLAT)));
    }
    report.print();
    Ok(())
}

async fn size(light: &mut LightShoots, shoots: usize, seconds: u64) -> Result<Cost> {
    progress(format!("{shoots} shoots: filling a seed in memory"));
    let api = MemoryApi::start(&Authority::new()?, Api::default()).await?;
    for (_, object) in (0..shoots).flat_map(|number| fill::shoot(light, number, None)).flatten() {
        api.store().apply(object).map_err(|error| anyhow!("{error:?}"))?;
    }
    let prober = super::prober(&api.kubeconfig(&Api::default().admin_token), &light.plan)?;
    light.probed(2, shoots).await?;
    let measured = light.measure(shoots, seconds, || Usage::of(prober.id())).await?;
    let counts = measured.counts;
    ensure!(counts.requests == counts.probes && counts.connections == 0, "more than one request a probe: {counts:?}");
    super::end(prober).await?;
    api.shutdown().await;
    Ok(Cost { shoots, seconds, measured })
}
