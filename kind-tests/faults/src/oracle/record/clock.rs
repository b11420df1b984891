//! A node's clock.

use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;

use crate::pace::BEAT;

/// After a clock was off, its stamps are doubted for so long: by then all that a probe can notice
/// has been noticed.
const MEMORY: Duration = Duration::from_secs(30);

/// A node's clock. It is put back by ten seconds or more, which a probe notices: a smaller step may
/// stay unnoticed, and what follows from that is for the core's simulation.
#[derive(Clone, Debug, Default)]
pub struct NodeClock {
    /// How far it is ahead of ours, and by how much more each second.
    skew: TimeDelta,
    drift: TimeDelta,
    /// Until when it is or was off.
    off_until: Option<Instant>,
}

impl NodeClock {
    /// Sets it.
    pub fn set(&mut self, skew: TimeDelta, drift: TimeDelta, now: Instant) {
        (self.skew, self.drift) = (skew, drift);
        self.off_until = Some(now + MEMORY);
    }

    /// Advances by a beat; how far it is ahead then.
    pub fn advance(&mut self) -> TimeDelta {
        self.skew += self.drift * i32::try_from(BEAT.as_secs()).unwrap_or(1);
        self.skew
    }

    /// Whether it differs from ours.
    pub fn differs(&self) -> bool {
        !self.skew.is_zero()
    }

    /// Whether its stamps cannot be taken at their word.
    pub fn is_off(&self, now: Instant) -> bool {
        self.differs() || self.off_until.is_some_and(|until| now < until)
    }
}
