//! How large the binary is, and how long it takes from its start until it is ready.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use testbed::Testbed;
use testbed::agent::{AgentKind, RunningAgent, binary};
use testbed::page::get;
use tokio::time::{Instant, sleep};

use super::end;
use super::fill::fill_seed;
use super::synthetic::FleetPlan;
use crate::report::{BenchmarkReport, Spread, progress};

/// How often `/readyz` is requested.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// It must be ready within this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is started.
#[derive(Args, Clone, Debug)]
pub struct StartOptions {
    #[command(flatten)]
    plan: FleetPlan,
    /// How often it is started.
    #[arg(long, default_value_t = 11)]
    times: usize,
}

/// Runs it.
pub async fn run(bed: &'static Testbed, options: StartOptions) -> Result<()> {
    let StartOptions { plan, times } = options;
    let size = std::fs::metadata(binary()?)?.len() as f64 / f64::from(1 << 20);
    let seed = bed.own_seed().await?;
    let kubeconfig = seed.prober_kubeconfig().await?;
    progress("starting it on a seed without shoots");
    let empty = starts(&kubeconfig, times).await?;
    let (shoots, machines) = (plan.shoots, plan.shoots * plan.nodes);
    let _shoots = fill_seed(seed.api(), plan, 0, None).await?;
    progress("starting it on a full seed");
    let full = starts(&kubeconfig, times).await?;

    let what =
        format!("the stripped binary, started {times} times, with leader election, on a real seed");
    let mut report = BenchmarkReport::new("start", what);
    for (word, value) in [("times", times), ("shoots", shoots), ("machines", machines)] {
        report.detail(word, value.into());
    }
    report.add([
        ("size", size),
        ("ready", empty.at(0.5)),
        ("ready_max", empty.at(1.0)),
        ("ready_full", full.at(0.5)),
        ("ready_full_max", full.at(1.0)),
    ]);
    report.print()
}

/// Seconds from exec until `/readyz` answers 200, one start after the other; each gives its Lease
/// up when it ends.
async fn starts(kubeconfig: &str, times: usize) -> Result<Spread> {
    let mut took = Vec::with_capacity(times);
    for _ in 0..times {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let begin = Instant::now();
        let prober = RunningAgent::alone(
            AgentKind::Prober,
            kubeconfig,
            None,
            &[format!("--health-bind-addr={address}")],
        )?;
        while !matches!(get(&address, "/readyz", PATIENCE).await, Ok((200, _))) {
            ensure!(begin.elapsed() < PATIENCE, "not ready within {PATIENCE:?}");
            sleep(POLL_INTERVAL).await;
        }
        took.push(begin.elapsed().as_secs_f64());
        end(prober).await?;
    }
    Ok(took.into_iter().collect())
}
