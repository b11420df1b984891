//! What one shoot more costs, from a hundred to thousands.

use anyhow::{Result, ensure};
use api_server::{Authority, MemoryApi, Options};
use clap::Args;
use testbed::gardener;

use super::synthetic::SyntheticShoots;
use super::{FleetPlan, end, fill, start_prober};
use crate::report::{BenchmarkReport, progress};

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
    /// For how many seconds each size is measured.
    #[arg(long, default_value_t = 114)]
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
    let shoots = sizes.last().copied().unwrap_or_default();
    let mut report = BenchmarkReport::new(
        "growth",
        format!("growth to {shoots} healthy shoots of {nodes} nodes; all in memory"),
    );
    let plan = FleetPlan {
        shoots,
        nodes,
        grace,
    };
    let fleet = SyntheticShoots::start(plan).await?;
    let mut costs = Vec::new();
    for &size in &sizes {
        costs.push(measure(&fleet, size, seconds).await?);
    }
    for (which, cost) in ["CPU, ms a minute", "memory, KiB"].into_iter().enumerate() {
        for (size, costs) in sizes.iter().zip(&costs) {
            report.add(&format!("{size} shoots: {cost}"), costs[which]);
        }
        let mut slopes = Vec::new();
        for (sizes, costs) in sizes.windows(2).zip(costs.windows(2)) {
            let more = (sizes[1] - sizes[0]) as f64;
            let slope = (costs[1][which] - costs[0][which]) / more;
            report.add(&format!("one more than {}: {cost}", sizes[0]), slope);
            slopes.push(slope);
        }
        slopes.sort_by(f64::total_cmp);
        if let [low, .., high] = slopes[..] {
            // Half of the distance between the extremes, as a share of their middle.
            let off = (high - low) / (high + low).abs() * 100.0;
            report.at_most(&format!("one more, {cost}: % off its mean"), off, FLAT);
        }
    }
    report.print();
    Ok(())
}

/// What so many of the shoots cost: CPU in ms a minute, memory in KiB.
async fn measure(fleet: &SyntheticShoots, shoots: usize, seconds: u64) -> Result<[f64; 2]> {
    progress(format!("{shoots} shoots: filling a seed in memory"));
    let options = Options {
        resources: gardener::resources(),
        ..Options::default()
    };
    let api = MemoryApi::start(&Authority::new()?, options).await?;
    for object in (0..shoots).flat_map(|number| fill::shoot(fleet, number)) {
        api.store().apply(object)?;
    }
    let prober = start_prober(&api.kubeconfig("admin"), fleet.plan)?;
    fleet.probed(2, shoots).await?;
    let measured = fleet.measure(seconds, prober.id()).await?;
    let [probes, requests] = [measured.probes, measured.requests];
    ensure!(
        requests == probes && probes >= shoots as f64,
        "{requests} requests for {probes} probes of {shoots} shoots"
    );
    end(prober).await?;
    let cpu = measured.cpu * 60_000.0 / seconds as f64;
    Ok([cpu, measured.usage.resident * 1024.0])
}
