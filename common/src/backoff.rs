//! The waits between attempts.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Waits that double up to the longest.
pub struct Backoff {
    waits: ExponentialBackoff,
    longest: Duration,
}

impl Backoff {
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            waits: doubling(first, longest).build(),
            longest,
        }
    }

    /// Each wait is up to twice as long, at random, so that replicas do not wait in step.
    pub fn jittered(first: Duration, longest: Duration) -> Self {
        Self {
            waits: doubling(first, longest).with_jitter().build(),
            longest,
        }
    }

    pub fn wait(&mut self) -> Duration {
        self.waits.next().unwrap_or(self.longest)
    }
}

fn doubling(first: Duration, longest: Duration) -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(first)
        .with_max_delay(longest)
        .without_max_times()
}
