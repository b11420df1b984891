//! The replicas of the prober: one that leads, and where a change is part of the race one that waits.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use kind_tests::{Prober, ProberConfig, Seed, eventually};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/garden/leases/dwd-prober-leader-election";
/// The longest that it takes to have a leader: the Lease lasts 15 s, and who waits tries every 2 s.
const ELECTION: Duration = Duration::from_secs(60);

/// One or two replicas.
pub struct Replicas {
    config: ProberConfig,
    leader: Prober,
    standby: Option<Prober>,
}

/// A change of leader.
#[derive(Clone, Copy, Debug)]
pub struct Succession {
    /// When the old leader was sent the signal.
    pub signal: DateTime<Utc>,
    /// When the new one led.
    pub leads: DateTime<Utc>,
}

impl Replicas {
    /// One that leads.
    pub async fn start(seed: &Seed, config: ProberConfig) -> Result<Self> {
        let leader = Prober::start(seed, config.clone()).await?;
        new_leader(seed, "").await?;
        Ok(Self { config, leader, standby: None })
    }

    /// Another one that waits.
    pub async fn add_standby(&mut self, seed: &Seed) -> Result<()> {
        self.standby = Some(Prober::start(seed, self.config.clone()).await?);
        Ok(())
    }

    /// Ends the leader, by SIGKILL or SIGTERM, and waits until the other one leads. Then one more is started that waits.
    pub async fn change(&mut self, seed: &Seed, kill: bool) -> Result<Succession> {
        let before = holder(seed).await?.0;
        let standby = self.standby.take().context("nobody waits")?;
        let old = std::mem::replace(&mut self.leader, standby);
        let signal = Utc::now();
        let ending = async { if kill { old.kill().await } else { old.terminate().await.map(drop) } };
        let (ended, leads) = tokio::join!(ending, new_leader(seed, &before));
        ended?;
        self.add_standby(seed).await?;
        Ok(Succession { signal, leads: leads? })
    }
}

async fn holder(seed: &Seed) -> Result<(String, String)> {
    let lease = seed.api().get(LEASE).await?;
    let text = |field: &str| lease["spec"][field].as_str().unwrap_or_default().to_owned();
    Ok((text("holderIdentity"), text("acquireTime")))
}

/// Waits for another leader and returns since when it leads, as its Lease says.
async fn new_leader(seed: &Seed, before: &str) -> Result<DateTime<Utc>> {
    eventually("another prober leads", ELECTION, async || {
        let (holder, since) = holder(seed).await?;
        ensure!(!holder.is_empty() && holder != before, "{holder:?} leads");
        Ok(DateTime::parse_from_rfc3339(&since)?.with_timezone(&Utc))
    })
    .await
}
