//! Delays between attempts.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Delays that double up to the longest.
pub struct Backoff {
    waits: ExponentialBackoff,
    longest: Duration,
}

impl Backoff {
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self {
            waits: exponential(first, longest).build(),
            longest,
        }
    }

    /// Adds up to as much again at random to each delay, so that replicas do not retry in step.
    pub fn jittered(first: Duration, longest: Duration) -> Self {
        Self {
            waits: exponential(first, longest).with_jitter().build(),
            longest,
        }
    }

    pub fn wait(&mut self) -> Duration {
        self.waits.next().unwrap_or(self.longest)
    }
}

fn exponential(first: Duration, longest: Duration) -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(first)
        .with_max_delay(longest)
        .without_max_times()
}
