//! Ours elects with a replica that leaves its election to client-go.

mod go;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use nix::sys::signal::Signal;
use serde_json::Value;
use testbed::agent::RunningAgent;
use testbed::{PATIENCE, SeedCluster, eventually, scenario, start_prober};

use self::go::GoReplica;
use crate::{QUICK, with_args};

const LEASE: &str = "dwd-prober-leader-election";
/// The times of [`QUICK`].
const DURATION: TimeDelta = TimeDelta::seconds(6);
const DEADLINE: TimeDelta = TimeDelta::seconds(4);
/// Longer than a Lease lasts without renewals.
const LONG: TimeDelta = TimeDelta::seconds(8);

/// Waits until an agent says that it leads.
pub async fn leading(agent: &RunningAgent) -> Result<()> {
    eventually("the agent leads", async || {
        ensure!(leads(agent), "it does not say so:\n{}", agent.tail(5));
        Ok(())
    })
    .await
}

fn leads(agent: &RunningAgent) -> bool {
    let lines = agent.log("\"leading\"");
    lines.iter().any(|line| line["message"] == "leading")
}

/// The Lease as it is now.
struct Lease(Value);

impl Lease {
    async fn of(seed: &SeedCluster) -> Result<Self> {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/garden/leases";
        let mut lease = seed.api().get(&format!("{leases}/{LEASE}")).await?;
        Ok(Self(lease["spec"].take()))
    }

    fn time(&self, field: &str) -> Result<DateTime<Utc>> {
        let time = self.0[field].as_str().context(field.to_owned())?;
        Ok(time.parse()?)
    }
}

/// Waits until the leader has renewed the Lease for long.
async fn renewed(seed: &SeedCluster) -> Result<()> {
    let begin = Utc::now();
    eventually("renewals", async || {
        let renewed = Lease::of(seed).await?.time("renewTime")?;
        ensure!(renewed - begin > LONG, "{renewed}");
        Ok(())
    })
    .await
}

#[test]
fn go_and_ours_never_lead_both() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let mut go = GoReplica::start(bed, &seed, "go-1").await?;
        go.leading().await?;
        for (signal, next) in [(Signal::SIGTERM, "go-2"), (Signal::SIGKILL, "go-3")] {
            let gives_up = signal == Signal::SIGTERM;
            // Go leads, ours waits.
            let mut ours = start_prober(&seed, with_args(&QUICK)).await?;
            renewed(&seed).await?;
            ensure!(!leads(&ours), "both lead");
            // Go gives it up, or is killed.
            let ended = go.end(signal).await?;
            let left = Lease::of(&seed).await?;
            leading(&ours).await?;
            let acquired = Lease::of(&seed).await?.time("acquireTime")?;
            ensure!(acquired >= ended, "at {acquired}, Go ended at {ended}");
            let waited = acquired - left.time("renewTime")?;
            ensure!((waited < DURATION) == gives_up, "{waited}");

            // Ours leads, Go waits.
            go = GoReplica::start(bed, &seed, next).await?;
            renewed(&seed).await?;
            ensure!(go.said("leading").is_none(), "both lead");
            // Ours gives it up, or is killed. Beyond its deadline it would not write even if it
            // lived.
            ours.signal(signal)?;
            ours.end(PATIENCE).await?;
            let left = Lease::of(&seed).await?;
            let waited = go.leading().await? - left.time("renewTime")?;
            ensure!(gives_up || waited >= DEADLINE, "{waited}");
        }
        Ok(())
    })
}
