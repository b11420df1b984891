//! What happens to the Services that a shoot's pods need.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;

use super::actor::Actor;
use crate::oracle::weeder::SERVICES;
use crate::pace::WINDOW;
use crate::world::World;

/// The story of one shoot's Services.
pub struct ServiceOutages {
    pub world: Arc<World>,
    pub namespace: String,
    pub actor: Actor,
}

impl ServiceOutages {
    /// Goes on until the round is over.
    pub async fn round(&mut self) {
        let Self { world, namespace, actor } = self;
        let (ledger, pods) = (&world.oracle.ledger, &world.oracle.weeder);
        loop {
            actor.wait(2.0..=30.0).await;
            if actor.is_over() {
                return;
            }
            let service = actor.rng.random_range(0..SERVICES.len());
            if actor.chance(0.2) {
                // A pod that crashes for a reason of its own, long after a recovery, and gets over it.
                actor.pause(WINDOW + Duration::from_secs(6)).await;
                pods.crash(namespace, service, true);
                actor.wait(1.0..=8.0).await;
                pods.crash(namespace, service, false);
                continue;
            }
            ledger.count("Services that went down");
            pods.turn(namespace, service, false);
            actor.wait(0.5..=3.0).await;
            pods.crash(namespace, service, true);
            actor.wait(0.5..=6.0).await;
            pods.turn(namespace, service, true);
            actor.wait(5.0..=11.0).await;
            // What is left would come back by itself when its back-off is over.
            pods.crash(namespace, service, false);
        }
    }
}
