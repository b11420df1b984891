//! Backoff after a refused DELETE, which only a person can make succeed.

use std::time::{Duration, Instant};

use common_core::backoff::doubling;

/// Delay after the first refusal; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(10);
/// Maximum delay: each trial adds a refusal and an error in the log.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Holds the DELETEs of a namespace back after a refusal: one at a time is tried, with exponential
/// backoff, until one succeeds.
#[derive(Debug, Default)]
pub(crate) struct HoldBack {
    refusals: u32,
    until: Option<Instant>,
}

impl HoldBack {
    /// End of the current or last delay.
    pub(crate) const fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Starts the next delay. Other DELETEs that were in flight with the refused one do not extend
    /// it.
    pub(crate) fn refused(&mut self, now: Instant) {
        if self.until.is_none_or(|until| now >= until) {
            self.refusals += 1;
            let wait = doubling(FIRST_WAIT, self.refusals, LONGEST_WAIT);
            self.until = Some(now + wait);
        }
    }

    pub(crate) fn lift(&mut self) {
        *self = Self::default();
    }
}
