//! End of a scaling, and the pause that follows if it failed.

use std::time::Duration;

use chrono::TimeDelta;
use common_core::backoff::doubling;

use crate::moment::Moment;
use crate::span;

#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub at: Moment,
    /// Scalings in a row, this one included, in which something could not be scaled.
    pub failures: u32,
}

impl Ended {
    /// The pause after scalings that failed: it doubles, and is no longer than the gap between
    /// probes while anything is held down.
    const FIRST_PAUSE: Duration = Duration::from_secs(1);
    const LONGEST_PAUSE: Duration = Duration::from_secs(5);

    /// Returns when the next scaling may begin.
    pub(super) fn next(self) -> Moment {
        let pause = doubling(Self::FIRST_PAUSE, self.failures, Self::LONGEST_PAUSE);
        self.at
            + if self.failures > 0 {
                span(pause)
            } else {
                TimeDelta::zero()
            }
    }
}
