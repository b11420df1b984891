//! What happens to the Services that a shoot's pods need.

use std::time::Duration;

use super::ShootStory;
use crate::oracle::record::pods::SERVICES;
use crate::pace::WINDOW;

impl ShootStory {
    /// Goes on until the round is over.
    pub async fn services(mut self) {
        let Self {
            world,
            shoot,
            actor,
        } = &mut self;
        loop {
            actor.wait(2.0..=30.0).await;
            if actor.is_over() {
                return;
            }
            let service = actor.pick(0..SERVICES.len());
            if actor.chance(0.2) {
                // A pod that crashes for a reason of its own, long after a recovery, and gets over
                // it.
                actor.pause(WINDOW + Duration::from_secs(6)).await;
                shoot.crash(service, true);
                actor.wait(1.0..=8.0).await;
                shoot.crash(service, false);
                continue;
            }
            world.oracle.violations.count("Services that went down");
            shoot.turn(service, false);
            actor.wait(0.5..=3.0).await;
            shoot.crash(service, true);
            actor.wait(0.5..=6.0).await;
            shoot.turn(service, true);
            actor.wait(5.0..=11.0).await;
            // What is left would come back by itself when its back-off is over.
            shoot.crash(service, false);
        }
    }
}
