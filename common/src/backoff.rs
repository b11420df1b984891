//! Delays between attempts.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Delays that double up to the longest. As much again is added at random to each at most, so that
/// replicas do not retry in step.
pub struct Backoff {
    waits: ExponentialBackoff,
    longest: Duration,
}

impl Backoff {
    pub fn new(first: Duration, longest: Duration) -> Self {
        let waits = ExponentialBuilder::new()
            .with_min_delay(first)
            .with_max_delay(longest)
            .without_max_times()
            .with_jitter();
        Self {
            waits: waits.build(),
            longest,
        }
    }

    pub fn wait(&mut self) -> Duration {
        self.waits.next().unwrap_or(self.longest)
    }
}
