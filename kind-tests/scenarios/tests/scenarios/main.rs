//! The scenarios: the real binary against real control planes.
//!
//! They mostly wait, so more of them run side by side than there are cores (RUST_TEST_THREADS).
//! Each has a seed and shoots to itself.

mod as_in_production;
mod candidates;
mod conformance;
mod election;
mod faults;
mod gardeners_objects;
mod kinds;
mod metrics;
mod rbac;
mod rehearsal;
mod throttling;
mod weeder;

use std::ops::RangeBounds;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::agent::RunningAgent;
use testbed::page::{metrics, page};
use testbed::shoot::{CA, KCM, MCM};
use testbed::{ProberConfig, ShootCluster, ShootPlan, Testbed, eventually, start_prober};

/// The usual three, and their replicas.
const USUAL: [(&str, i64); 3] = [(KCM, 2), (MCM, 1), (CA, 1)];
/// A grace that leaves time between the verdict and the moment from which order no longer counts,
/// also on a machine that does much at once.
const ORDERLY: Duration = Duration::from_secs(24);
/// Twice the usual grace: every lease would have been expired for long.
const LONG: Duration = Duration::from_secs(12);
/// The Leases of the agents' elections.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/garden/leases";
/// The lead of a process that was killed ends soon.
const QUICK: [&str; 3] = [
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
];

/// A shoot on a seed of its own, and the prober there, which has seen it healthy.
async fn alone(
    bed: &Testbed,
    name: &str,
    plan: ShootPlan,
    args: &[&str],
) -> Result<(ShootCluster, RunningAgent)> {
    let shoot = ShootCluster::create(bed, &bed.own_seed().await?, name, plan).await?;
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

/// An outage begins, and the usual three are held down.
async fn goes_down(shoot: &ShootCluster) -> Result<()> {
    shoot.nodes.cut_all();
    shoot.held_down(&USUAL).await
}

/// The outage ends, and the usual three come back.
async fn comes_back(shoot: &ShootCluster) -> Result<()> {
    shoot.nodes.heal_all();
    shoot.free_at(&USUAL).await
}

/// Waits for a write to a dependent since this entry of the shoot's history.
async fn written(shoot: &ShootCluster, begin: usize) -> Result<()> {
    let written = async || {
        ensure!(!shoot.writes_since(begin).is_empty(), "none");
        Ok(())
    };
    shoot.eventually("a write", written).await
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

/// Waits until the agent that writes this log answers a request for `/readyz` with this status and
/// this word.
async fn is_ready(log: &Path, status: u16, word: &str) -> Result<()> {
    eventually(&format!("/readyz says {status} {word}"), async || {
        let (answer, body) = page(log, "/readyz").await?;
        ensure!(answer == status && body.contains(word), "{answer}: {body}");
        Ok(())
    })
    .await
}
