//! What became of the Lease.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use testbed::kube_api::ObjectChange;
use testbed::{SeedCluster, eventually};
use tokio::task::JoinSet;

use crate::LEASES;

/// One state of the Lease.
#[derive(Clone, Debug)]
pub struct LeaseEntry {
    pub holder: String,
    pub acquired: DateTime<Utc>,
    pub renewed: DateTime<Utc>,
}

/// All states of the Lease, in order.
pub struct Register {
    entries: Arc<Mutex<Vec<LeaseEntry>>>,
    _task: JoinSet<()>,
}

impl Register {
    pub fn of(seed: &SeedCluster) -> Self {
        let entries = Arc::new(Mutex::new(Vec::new()));
        let mut task = JoinSet::new();
        let (api, book) = (seed.api().clone(), entries.clone());
        task.spawn(async move {
            let note = |change| {
                let ObjectChange::Set(lease) = change else {
                    return;
                };
                let time = |field: &str| {
                    lease["spec"][field]
                        .as_str()
                        .and_then(|text| text.parse().ok())
                        .unwrap_or_default()
                };
                let holder = lease["spec"]["holderIdentity"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                let entry = LeaseEntry {
                    holder,
                    acquired: time("acquireTime"),
                    renewed: time("renewTime"),
                };
                book.lock().push(entry);
            };
            // When it ends too early, the scenario misses entries and fails.
            let _ = api.follow(LEASES, note).await;
        });
        Self {
            entries,
            _task: task,
        }
    }

    fn all(&self) -> Vec<LeaseEntry> {
        self.entries.lock().clone()
    }

    pub fn holder(&self) -> String {
        self.all()
            .last()
            .map(|entry| entry.holder.clone())
            .unwrap_or_default()
    }

    /// Waits until a replica holds the Lease other than these; returns its first entry and the last
    /// one before it.
    pub async fn next(&self, known: &[&str]) -> Result<(LeaseEntry, Option<LeaseEntry>)> {
        eventually("another leader", async || {
            let all = self.all();
            let first = all.iter().position(|entry| {
                !entry.holder.is_empty() && !known.contains(&entry.holder.as_str())
            });
            let first = first.with_context(|| format!("the last holder is {:?}", self.holder()))?;
            Ok((
                all[first].clone(),
                first.checked_sub(1).map(|last| all[last].clone()),
            ))
        })
        .await
    }

    /// Waits for renewals of the leader.
    pub async fn renewals(&self, count: usize) -> Result<()> {
        let begin = self.all().len();
        eventually("renewals", async || {
            let now = self.all().len() - begin;
            ensure!(now >= count, "{now} of {count}");
            Ok(())
        })
        .await
    }
}
