//! Load: what a whole seed full of shoots costs, and how fast the watchdog is when all of them need
//! it at once.

pub mod bare;
pub mod fill;
pub mod growth;
pub mod healthy;
pub mod light;
pub mod meltdown;
mod renewer;
pub mod start;
pub mod weeder;

use anyhow::{Result, ensure};
use testbed::ProberConfig;
use testbed::agent::{Agent, Kind};

/// Starts a prober for light shoots: with Gardener's own configuration, or with short times where
/// the grace period is not the usual one.
fn prober(kubeconfig: &str, plan: &light::FleetPlan) -> Result<Agent> {
    let short = (plan.grace != light::USUAL_GRACE).then(|| ProberConfig::default().text());
    Agent::alone(Kind::Prober, kubeconfig, short.as_deref(), &[])
}

/// Ends an agent, which must end well.
async fn end(agent: Agent) -> Result<()> {
    let status = agent.terminate().await?;
    ensure!(status.success(), "the agent ended with {status}");
    Ok(())
}
