//! The binary's size, and the time from its start until it is ready.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::agent::{AgentKind, RunningAgent, binary};
use testbed::page::get;
use testbed::{PATIENCE, Testbed};
use tokio::time::{Instant, sleep};

use super::fill::fill_seed;
use super::{FleetPlan, end};
use crate::report::BenchmarkReport;

/// Time between two requests for `/readyz`.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Runs it.
pub async fn run(bed: &'static Testbed, plan: FleetPlan, times: usize) -> Result<()> {
    let seed = bed.own_seed().await?;
    let kubeconfig = seed.prober_kubeconfig().await?;
    let mut report = BenchmarkReport::default();
    let size = std::fs::metadata(binary()?)?.len() as f64 / f64::from(1 << 20);
    report.at_most("size of the binary, MiB", size, 15.0);
    let empty = starts(&kubeconfig, times).await?;
    report.times("from start to ready, s", empty, Some(0.3));
    let _shoots = fill_seed(seed.api(), plan).await?;
    let full = starts(&kubeconfig, times).await?;
    report.times("from start to ready on a full seed, s", full, None);
    report.print(&format!(
        "the stripped binary, started {times} times, with leader election, on a real seed"
    ));
    Ok(())
}

/// Seconds from exec until `/readyz` answers 200, one start after the other; each gives its Lease
/// up when it ends.
async fn starts(kubeconfig: &str, times: usize) -> Result<Vec<f64>> {
    let mut took = Vec::new();
    for _ in 0..times {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let begin = Instant::now();
        let args = [format!("--health-bind-addr={address}")];
        let prober = RunningAgent::alone(AgentKind::Prober, kubeconfig, None, &args)?;
        while !matches!(get(&address, "/readyz", PATIENCE).await, Ok((200, _))) {
            ensure!(begin.elapsed() < PATIENCE, "not ready within {PATIENCE:?}");
            sleep(POLL_INTERVAL).await;
        }
        took.push(begin.elapsed().as_secs_f64());
        end(prober).await?;
    }
    Ok(took)
}
