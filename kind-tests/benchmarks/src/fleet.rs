//! Load: what a whole seed full of shoots costs, and how fast the watchdog is when all of them need
//! it at once.

pub mod baseline;
pub mod fill;
pub mod growth;
pub mod healthy;
pub mod meltdown;
mod renewals;
pub mod start;
pub mod synthetic;
pub mod weeder;

use anyhow::{Result, ensure};
use testbed::ProberConfig;
use testbed::agent::{AgentKind, RunningAgent};

use self::synthetic::{FleetPlan, USUAL_GRACE};

/// Starts a prober for synthetic shoots: with Gardener's own configuration, or with short times
/// where the grace period is not the usual one.
fn start_prober(kubeconfig: &str, plan: &FleetPlan) -> Result<RunningAgent> {
    let short = (plan.grace != USUAL_GRACE).then(|| ProberConfig::default().text());
    RunningAgent::alone(AgentKind::Prober, kubeconfig, short.as_deref(), &[])
}

/// Ends an agent, which must end well.
async fn end(agent: RunningAgent) -> Result<()> {
    let status = agent.terminate().await?;
    ensure!(status.success(), "the agent ended with {status}");
    Ok(())
}
