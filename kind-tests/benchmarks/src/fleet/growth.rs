//! What one shoot more costs, from a hundred to thousands.

use anyhow::{Result, anyhow, ensure};
use clap::Args;
use testbed::api::{MemoryApi, Options as Api};
use testbed::authority::Authority;

use super::fill;
use super::light::{FleetPlan, LightShoots, Measured};
use crate::report::{BenchmarkReport, Goal, Spread, progress};

/// By how much, in percent, the cost of one shoot more may differ from its mean between two sizes.
const FLAT: f64 = 15.0;

/// How far it grows.
#[derive(Args, Clone, Debug)]
pub struct GrowthOptions {
    /// Numbers of shoots, ascending.
    #[arg(long, value_delimiter = ',', default_value = "100,300,1000,2000")]
    sizes: Vec<usize>,
    /// Nodes in each shoot.
    #[arg(long, default_value_t = 100)]
    nodes: usize,
    /// nodeMonitorGracePeriod in seconds.
    #[arg(long, default_value_t = 40)]
    grace: u32,
    /// For how many seconds each size is measured, a multiple of the 19 s in which each shoot is
    /// probed once; small ones twice as long, for they use little.
    #[arg(long, default_value_t = 57)]
    seconds: u64,
}

/// Runs it.
pub async fn run(options: GrowthOptions) -> Result<()> {
    let GrowthOptions {
        sizes,
        nodes,
        grace,
        seconds,
    } = options;
    ensure!(
        sizes.is_sorted() && sizes.len() > 1,
        "sizes are to be ascending, and more than one"
    );
    let largest = sizes.last().copied().unwrap_or_default();
    let mut light = LightShoots::start(FleetPlan {
        shoots: largest,
        nodes,
        grace,
    })
    .await?;
    let what = format!(
        "growth to {largest} healthy shoots of {nodes} nodes; seed and shoots in memory, in processes of their own"
    );
    let mut report = BenchmarkReport::new("growth", what);
    // Numbers of shoots, each with its CPU in ms per minute and its memory in KiB.
    let mut costs = Vec::new();
    for shoots in sizes {
        let seconds = if shoots < largest / 4 {
            seconds * 2
        } else {
            seconds
        };
        let Measured {
            counts,
            late,
            usage,
        } = size(&mut light, shoots, seconds).await?;
        let per_second = |amount: f64| amount / seconds as f64;
        let cpu = per_second(usage.cpu.as_secs_f64());
        let cells = [
            (
                "probes",
                "probes per second",
                per_second(counts.probes as f64),
            ),
            ("cpu", "CPU, % of a core", cpu * 100.0),
            ("resident", "resident memory, MiB", usage.resident),
            ("most", "at most, MiB", usage.most),
            (
                "traffic",
                "answers, MB/s",
                per_second(counts.bytes as f64) / 1e6,
            ),
            (
                "late_p50",
                "probe later than its schedule: median, s",
                late.at(0.5),
            ),
            ("late_p99", "99th percentile, s", late.at(0.99)),
            ("late_max", "worst, s", late.at(1.0)),
        ];
        report.matrix_row(&format!("{shoots} shoots"), &format!("*_{shoots}"), &cells);
        costs.push((shoots, [cpu * 60_000.0, usage.resident * 1024.0]));
    }
    for (which, key, what, unit) in [
        (0, "cpu", "CPU of one shoot more, in ms per minute", "ms"),
        (1, "memory", "memory of one shoot more", "KiB"),
    ] {
        let mut slopes = Vec::new();
        for pair in costs.windows(2) {
            let [(from, before), (to, after)] = [pair[0], pair[1]];
            let slope = (after[which] - before[which]) / (to - from) as f64;
            report.rows([(
                &format!("{key}_{from}_to_{to}"),
                &format!("{what}, {from} to {to}"),
                slope,
                unit,
                None,
            )]);
            slopes.push(slope);
        }
        let slopes: Spread = slopes.into_iter().collect();
        let (low, high) = (slopes.at(0.0), slopes.at(1.0));
        // Half of the distance between the extremes, as a share of their middle.
        let off = (high - low) / (high + low) * 100.0;
        report.rows([(
            &format!("{key}_flat"),
            &format!("{what}: how far off its mean"),
            off,
            "%",
            Some(Goal::AtMost(FLAT)),
        )]);
    }
    report.print()
}

async fn size(light: &mut LightShoots, shoots: usize, seconds: u64) -> Result<Measured> {
    progress(format!("{shoots} shoots: filling a seed in memory"));
    let api = MemoryApi::start(&Authority::new()?, Api::default()).await?;
    for object in (0..shoots).flat_map(|number| fill::shoot(light, number, None)) {
        api.store()
            .apply(object)
            .map_err(|error| anyhow!("{error:?}"))?;
    }
    let prober = super::prober(&api.kubeconfig(&Api::default().admin_token), &light.plan)?;
    light.probed(2, shoots).await?;
    let measured = light.measure(shoots, seconds, prober.id()).await?;
    let counts = measured.counts;
    ensure!(
        counts.requests == counts.probes && counts.connections == 0,
        "more than one request a probe: {counts:?}"
    );
    super::end(prober).await?;
    api.shutdown().await;
    Ok(measured)
}
