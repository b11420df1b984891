//! What became of the Lease.

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use testbed::followed::Followed;
use testbed::kube_api::ObjectChange;
use testbed::{SeedCluster, eventually};

use crate::LEASES;

/// One state of the Lease.
#[derive(Clone, Debug)]
pub struct LeaseEntry {
    pub holder: String,
    pub acquired: DateTime<Utc>,
    pub renewed: DateTime<Utc>,
}

/// All states of the Lease, in order.
pub struct Register(Followed<Vec<LeaseEntry>>);

impl Register {
    pub fn of(seed: &SeedCluster) -> Self {
        let note = |entries: &mut Vec<_>, change| {
            let ObjectChange::Set(lease) = change else {
                return;
            };
            let text = |field: &str| lease["spec"][field].as_str().unwrap_or_default();
            let time = |field| text(field).parse().unwrap_or_default();
            entries.push(LeaseEntry {
                holder: text("holderIdentity").to_owned(),
                acquired: time("acquireTime"),
                renewed: time("renewTime"),
            });
        };
        Self(Followed::start(seed.api(), LEASES, Vec::new(), note))
    }

    /// Waits until this replica holds the Lease; returns its first entry and the last one before
    /// it.
    pub async fn led_by(&self, replica: &str) -> Result<(LeaseEntry, LeaseEntry)> {
        eventually("the leader is registered", async || {
            let all = self.0.get().clone();
            let mut pairs = all.windows(2).filter(|pair| pair[1].holder == replica);
            let first = pairs.next().with_context(|| format!("{:?}", all.last()))?;
            Ok((first[1].clone(), first[0].clone()))
        })
        .await
    }

    /// Waits for renewals of the leader.
    pub async fn renewals(&self, count: usize) -> Result<()> {
        let begin = self.0.get().len();
        eventually("renewals", async || {
            let now = self.0.get().len() - begin;
            ensure!(now >= count, "{now} of {count}");
            Ok(())
        })
        .await
    }
}
