//! What one shoot more costs, from a hundred to thousands.

use anyhow::{Result, ensure};
use api_server::{Authority, MemoryApi, Options};
use clap::Args;
use testbed::gardener;

use super::synthetic::{FleetPlan, Measured, SyntheticShoots};
use super::{end, fill, start_prober};
use crate::report::{BenchmarkReport, Spread, progress};

const LATE: &str = "probe later than its schedule: median, s";

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
    let is_growth = sizes.is_sorted() && sizes.len() > 1;
    ensure!(is_growth, "sizes are to be ascending, and more than one");
    let shoots = sizes.last().copied().unwrap_or_default();
    let what = format!("growth to {shoots} healthy shoots of {nodes} nodes; all in memory");
    let mut report = BenchmarkReport::new("growth", what);
    let fleet = SyntheticShoots::start(FleetPlan {
        shoots,
        nodes,
        grace,
    })
    .await?;
    // Numbers of shoots, each with its CPU in ms per minute and its memory in KiB.
    let mut costs = Vec::new();
    for size in sizes {
        let seconds = seconds * if size < shoots / 4 { 2 } else { 1 };
        let measured = measure(&fleet, size, seconds).await?;
        let per_second = |amount: f64| amount / seconds as f64;
        let (late, usage) = (&measured.late, measured.usage);
        let cpu = per_second(measured.cpu);
        let megabytes = measured.bytes as f64 / 1e6;
        let cells = [
            (
                "probes",
                "probes per second",
                per_second(measured.probes as f64),
            ),
            ("cpu", "CPU, % of a core", cpu * 100.0),
            ("resident", "resident memory, MiB", usage.resident),
            ("most", "at most, MiB", usage.most),
            ("traffic", "answers, MB/s", per_second(megabytes)),
            ("late_p50", LATE, late.at(0.5)),
            ("late_p99", "99th percentile, s", late.at(0.99)),
            ("late_max", "worst, s", late.at(1.0)),
        ];
        report.matrix_row(&format!("{size} shoots"), &format!("*_{size}"), &cells);
        costs.push((size, [cpu * 60_000.0, usage.resident * 1024.0]));
    }
    for (which, cost) in ["cpu", "memory"].into_iter().enumerate() {
        let mut slopes = Vec::new();
        for pair in costs.windows(2) {
            let [(from, before), (to, after)] = [pair[0], pair[1]];
            let slope = (after[which] - before[which]) / (to - from) as f64;
            report.detail("from", from.into());
            report.detail("to", to.into());
            report.add([(&format!("{cost}_{{from}}_to_{{to}}"), slope)]);
            slopes.push(slope);
        }
        let slopes = Spread::from_iter(slopes);
        let (low, high) = (slopes.at(0.0), slopes.at(1.0));
        // Half of the distance between the extremes, as a share of their middle.
        let off = (high - low) / (high + low) * 100.0;
        report.add([(&format!("{cost}_flat"), off)]);
    }
    report.print()
}

async fn measure(fleet: &SyntheticShoots, shoots: usize, seconds: u64) -> Result<Measured> {
    progress(format!("{shoots} shoots: filling a seed in memory"));
    let options = Options {
        resources: gardener::resources(),
        ..Options::default()
    };
    let api = MemoryApi::start(&Authority::new()?, options).await?;
    for object in (0..shoots).flat_map(|number| fill::shoot(fleet, number, None)) {
        api.store().apply(object)?;
    }
    let prober = start_prober(&api.kubeconfig("admin"), &fleet.plan)?;
    fleet.probed(2, shoots).await?;
    let measured = fleet.measure(shoots, seconds, prober.id()).await?;
    let counted = [measured.requests, measured.connections];
    ensure!(
        counted == [measured.probes, 0],
        "requests and new connections for {} probes: {counted:?}",
        measured.probes
    );
    end(prober).await?;
    api.shutdown().await;
    Ok(measured)
}
