//! Load: what a whole seed full of shoots costs, and how fast the watchdog is when all of them need
//! it at once.

pub mod baseline;
pub mod fill;
pub mod growth;
pub mod healthy;
pub mod meltdown;
pub mod start;
pub mod synthetic;
pub mod weeder;

use anyhow::{Result, ensure};
use chrono::TimeDelta;
use clap::Args;
use testbed::ProberConfig;
use testbed::agent::RunningAgent;

/// Kubernetes' grace period, in seconds.
pub const USUAL_GRACE: u32 = 40;

/// Synthetic shoots.
#[derive(Args, Clone, Copy, Debug)]
pub struct FleetPlan {
    /// Number of shoots
    #[arg(long, default_value_t = 300)]
    pub shoots: usize,
    /// Nodes in each.
    #[arg(long, default_value_t = 100)]
    pub nodes: usize,
    /// nodeMonitorGracePeriod in seconds; nodes renew four times in it.
    #[arg(long, default_value_t = USUAL_GRACE)]
    pub grace: u32,
}

impl FleetPlan {
    pub fn grace(&self) -> TimeDelta {
        TimeDelta::seconds(self.grace.into())
    }
}

/// Gardener's own configuration, or short times where the grace period is not the usual one.
pub fn prober_config(grace: u32) -> ProberConfig {
    if grace == USUAL_GRACE {
        ProberConfig::gardener()
    } else {
        ProberConfig::default()
    }
}

/// Ends an agent, which must end well.
async fn end(agent: RunningAgent) -> Result<()> {
    let status = agent.terminate().await?;
    ensure!(status.success(), "the agent ended with {status}");
    Ok(())
}
