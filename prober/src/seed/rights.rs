//! Rights to write the dependents, which are asked for before an outage would be the first to need
//! them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::access_review::{Right, allowed_everywhere};
use common::metrics::{Registry, register_computed};
use kube::Client;
use parking_lot::Mutex;

use super::Seed;

/// Pause before rights that are missing, or of kinds that were not known, are asked for again.
const ASKED_AGAIN: Duration = Duration::from_secs(60);
/// Rounds after which those that were granted are asked for again: a Role may have changed.
const FORGOTTEN_AFTER: u32 = 10;

/// Rights without which something that the config names cannot be scaled.
#[derive(Debug, Default)]
pub(crate) struct MissingRights(Mutex<BTreeSet<Right>>);

impl MissingRights {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().iter().map(Right::to_string).collect()
    }

    /// Asks for those rights that are not known to be granted.
    async fn ask(&self, client: &Client, rights: BTreeSet<Right>, granted: &mut BTreeSet<Right>) {
        self.0.lock().retain(|right| rights.contains(right));
        for right in rights {
            if granted.contains(&right) {
                continue;
            }
            match allowed_everywhere(client, &right).await {
                Some(true) => {
                    if self.0.lock().remove(&right) {
                        tracing::info!(%right, "the right is granted now");
                    }
                    granted.insert(right);
                }
                Some(false) if self.0.lock().insert(right.clone()) => {
                    tracing::error!(%right, "a right is missing: what the config names could not be scaled in an outage");
                }
                _ => {}
            }
        }
    }
}

impl Seed {
    /// Asks for the rights to write what the config names, until cancelled.
    pub async fn follow_rights(&self) {
        loop {
            let mut granted = BTreeSet::new();
            for _ in 0..FORGOTTEN_AFTER {
                let dependents = self.dependents();
                let wanted = dependents.iter().filter_map(|dependent| dependent.right());
                let wanted = wanted.collect();
                self.missing_rights
                    .ask(&self.client, wanted, &mut granted)
                    .await;
                tokio::time::sleep(ASKED_AGAIN).await;
            }
        }
    }
}

/// Registers the number of rights that are missing.
pub(crate) fn register(registry: &mut Registry, seed: Arc<Seed>) {
    register_computed(
        registry,
        "dwd_missing_rights",
        "Rights without which something that the config names cannot be scaled.",
        move || Some(u64::try_from(seed.missing_rights.0.lock().len()).unwrap_or(u64::MAX)),
    );
}
