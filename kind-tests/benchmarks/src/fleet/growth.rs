//! The cost of one shoot more, from a hundred to thousands.

use std::iter::zip;

use anyhow::Result;
use api_server::{Authority, MemoryApi, Options};
use testbed::agent::{AgentKind, RunningAgent};
use testbed::gardener;

use super::synthetic::SyntheticShoots;
use super::{FleetPlan, end, fill, prober_config};
use crate::report::{BenchmarkReport, progress};

/// Percent by which the cost of one shoot more may differ from its mean between two sizes.
const FLAT: f64 = 15.0;

/// The sizes, in twentieths of all shoots.
const SIZES: [usize; 4] = [1, 3, 10, 20];

/// Runs it.
pub async fn run(plan: FleetPlan, seconds: u64) -> Result<()> {
    let FleetPlan { shoots, nodes, .. } = plan;
    let sizes = SIZES.map(|size| shoots * size / 20);
    let fleet = SyntheticShoots::start(plan).await?;
    let mut costs = Vec::new();
    for size in sizes {
        costs.push(measure(&fleet, size, seconds).await?);
    }
    let mut report = BenchmarkReport::default();
    for (which, cost) in ["CPU, ms a minute", "memory, KiB"].into_iter().enumerate() {
        let costs = Vec::from_iter(costs.iter().map(|costs| costs[which]));
        for (size, costs) in zip(sizes, &costs) {
            report.add(&format!("{size} shoots: {cost}"), *costs);
        }
        let steps = zip(sizes.windows(2), costs.windows(2));
        let slopes =
            steps.map(|(sizes, costs)| (costs[1] - costs[0]) / (sizes[1] - sizes[0]) as f64);
        let mut slopes = Vec::from_iter(slopes);
        slopes.sort_by(f64::total_cmp);
        if let [low, .., high] = slopes[..] {
            // Half of the distance between the extremes, as a share of their middle.
            let off = (high - low) / (high + low).abs() * 100.0;
            report.at_most(&format!("one more, {cost}: % off its mean"), off, FLAT);
        }
    }
    report.print(&format!(
        "growth to {shoots} healthy shoots of {nodes} nodes; all in memory"
    ));
    Ok(())
}

/// Measures so many of the shoots: CPU in ms a minute, memory in KiB.
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
    let config = prober_config(fleet.plan.grace).text();
    let (kind, kubeconfig) = (AgentKind::Prober, api.kubeconfig("admin"));
    let prober = RunningAgent::alone(kind, &kubeconfig, Some(&config), &[])?;
    fleet.probed(2, shoots).await?;
    let measured = fleet.measure(seconds, prober.id()).await?;
    end(prober).await?;
    let cpu = measured.cpu * 60_000.0 / seconds as f64;
    Ok([cpu, measured.usage.resident * 1024.0])
}
