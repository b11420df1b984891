//! Looks at one shoot: lists its leases and, if they matter, its nodes. What follows is decided elsewhere.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::core::lease::LeaseList;
use crate::core::moment::Look;
use crate::core::verdict::NodeRecord;
use crate::engine::error::ProbeError;
use crate::engine::{Budget, Engine, Seen};
use crate::seed::Seed;
use crate::seed::secret::ShootSecret;

/// Looks at one shoot again and again; its connection stays.
pub struct Probe {
    engine: Engine<ShootSecret>,
    /// What is left for the look that is under way.
    budget: Budget,
}

/// What a request has brought.
#[derive(Debug)]
pub enum Looked {
    /// All leases, and when they were listed.
    Leases(Look, LeaseList),
    /// All nodes.
    Nodes(Vec<NodeRecord>),
}

impl Probe {
    /// A probe that has not looked yet.
    pub fn new(namespace: String, clock: Clock, seed: Arc<Seed>) -> Self {
        let engine = Engine::new(clock, ShootSecret { seed, namespace });
        Self { engine, budget: Budget::starting_now(Duration::ZERO) }
    }

    /// Begins a look, all of which may take `timeout`: lists the leases.
    ///
    /// # Errors
    /// When there is no complete, most-recent answer; that is never evidence of anything.
    pub async fn leases(&mut self, timeout: Duration) -> Result<Looked, ProbeError> {
        self.budget = Budget::starting_now(timeout);
        let Seen { look, items } = self.engine.leases(self.budget).await?;
        Ok(Looked::Leases(look, items))
    }

    /// Goes on with the look: lists the nodes.
    ///
    /// # Errors
    /// As for the leases.
    pub async fn nodes(&mut self) -> Result<Looked, ProbeError> {
        let Seen { items, .. } = self.engine.nodes(self.budget).await?;
        Ok(Looked::Nodes(items))
    }
}
