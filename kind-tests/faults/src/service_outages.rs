//! What happens to the Services that a shoot's pods need.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::pace::WINDOW;
use crate::rng::Rng;
use crate::weeder_oracle::SERVICES;
use crate::world::World;

/// The story of one shoot's Services.
pub struct ServiceOutages {
    pub world: Arc<World>,
    pub namespace: String,
    pub rng: Rng,
    pub rest: watch::Receiver<bool>,
}

impl ServiceOutages {
    async fn pause(&mut self, time: Duration) {
        let until = Instant::now() + time;
        timeout_at(until, self.rest.wait_for(|rest| *rest)).await.ok();
    }

    /// Goes on until rest is called for.
    pub async fn round(mut self) -> Self {
        loop {
            let calm = self.rng.seconds(2.0, 30.0);
            self.pause(calm).await;
            if *self.rest.borrow() {
                return self;
            }
            let service = usize::try_from(self.rng.number(0..=SERVICES.len() as i64 - 1)).unwrap_or_default();
            let weeder_oracle = self.world.weeder_oracle.clone();
            if self.rng.chance(0.2) {
                // A pod that crashes for a reason of its own, long after a recovery, and gets over it.
                self.pause(WINDOW + Duration::from_secs(6)).await;
                weeder_oracle.crash(&self.namespace, service, true);
                let time = self.rng.seconds(1.0, 8.0);
                self.pause(time).await;
                weeder_oracle.crash(&self.namespace, service, false);
                continue;
            }
            self.world.ledger.count("Services that went down");
            weeder_oracle.turn(&self.namespace, service, false);
            let time = self.rng.seconds(0.5, 3.0);
            self.pause(time).await;
            weeder_oracle.crash(&self.namespace, service, true);
            let time = self.rng.seconds(0.5, 6.0);
            self.pause(time).await;
            weeder_oracle.turn(&self.namespace, service, true);
            let time = self.rng.seconds(5.0, 11.0);
            self.pause(time).await;
            // What is left would come back by itself when its back-off is over.
            weeder_oracle.crash(&self.namespace, service, false);
        }
    }
}
