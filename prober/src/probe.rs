//! Probes one shoot: lists its leases and, if they matter, its nodes. What follows is decided elsewhere.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::core::lease::LeaseList;
use crate::core::moment::RequestTimes;
use crate::core::verdict::NodeRecord;
use crate::seed::Seed;
use crate::seed::secret::ShootSecret;
use crate::shoot_client::error::ProbeError;
use crate::shoot_client::{Budget, Listing, ShootClient};

pub struct Probe {
    client: ShootClient<ShootSecret>,
    /// What is left for the probe that is under way.
    budget: Budget,
}

#[derive(Debug)]
pub enum Listed {
    Leases(RequestTimes, LeaseList),
    Nodes(Vec<NodeRecord>),
}

impl Probe {
    pub fn new(namespace: String, clock: Clock, seed: Arc<Seed>) -> Self {
        let client = ShootClient::new(clock, ShootSecret { seed, namespace });
        Self { client, budget: Budget::starting_now(Duration::ZERO) }
    }

    /// Begins a probe, all of which may take `timeout`: lists the leases. Without a complete, most-recent answer there is an error, which
    /// is never evidence of anything.
    pub async fn leases(&mut self, timeout: Duration) -> Result<Listed, ProbeError> {
        self.budget = Budget::starting_now(timeout);
        let Listing { times, items } = self.client.leases(self.budget).await?;
        Ok(Listed::Leases(times, items))
    }

    pub async fn nodes(&mut self) -> Result<Listed, ProbeError> {
        Ok(Listed::Nodes(self.client.nodes(self.budget).await?.items))
    }
}
