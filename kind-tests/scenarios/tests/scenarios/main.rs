//! The scenarios: the real binary against real control planes, where only these can show what users
//! rely on. All else is shown on an API server in memory.
//!
//! They mostly wait, so more of them run side by side than there are cores (RUST_TEST_THREADS).
//! Each has a seed and shoots to itself.

mod conformance;
mod election;
mod faults;
mod gardeners_objects;
mod rbac;
mod rehearsal;
mod weeder;

use std::ops::RangeBounds;
use std::path::Path;

use anyhow::{Result, ensure};
use testbed::agent::RunningAgent;
use testbed::page::metrics;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ProberConfig, ShootCluster, ShootPlan, Testbed, eventually, start_prober};

/// The usual three, and their replicas.
const USUAL: [(&str, i64); 3] = [(KCM, 2), (MCM, 1), (CA, 1)];
/// The lead of a process that was killed ends soon.
const QUICK: [&str; 3] = [
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
];

/// A shoot on a seed of its own, and the prober there, which has seen it healthy.
async fn alone(bed: &Testbed, name: &str, args: &[&str]) -> Result<(ShootCluster, RunningAgent)> {
    let seed = bed.own_seed().await?;
    let shoot = ShootCluster::create(bed, &seed, name, ShootPlan::default()).await?;
    let prober = start_prober(&shoot.seed, with_args(args)).await?;
    shoot.after_probes(2).await?;
    Ok((shoot, prober))
}

/// The default config, and these arguments.
fn with_args(args: &[&str]) -> ProberConfig {
    ProberConfig {
        args: args.iter().map(ToString::to_string).collect(),
        ..ProberConfig::default()
    }
}

/// Waits until an agent's log has a line of this message with this word.
async fn logs(agent: &RunningAgent, message: &str, word: &str) -> Result<()> {
    eventually(&format!("{message}: {word}"), async || {
        let mut lines = agent.log(message).into_iter();
        // Quotes are escaped once or twice.
        let is_it = |line: String| line.replace('\\', "").contains(word);
        let found = lines.any(|line| is_it(line.to_string()));
        ensure!(found, "{}", agent.tail(20));
        Ok(())
    })
    .await
}

/// Waits until the agent that writes this log shows such a value of a series.
async fn shows(log: &Path, series: &str, values: impl RangeBounds<f64>) -> Result<()> {
    eventually(series, async || {
        let value = metrics(log).await?.value(series)?;
        ensure!(values.contains(&value), "{value}");
        Ok(())
    })
    .await
}
