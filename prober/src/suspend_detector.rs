//! Notices that this process did not run: suspended, starved, or moved in time with its whole host.
//! Earlier findings are out of date then, and timers that were set before all fire together: nothing
//! may be written on either.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use prober_core::moment::Moment;
use tokio::time::sleep;

use crate::clock::Clock;

/// Interval at which this process shows itself that it runs.
const TICK: Duration = Duration::from_secs(1);
/// Longest gap between two ticks that is no suspension: far more than a busy host makes of a
/// second, and less than the margin that kubelets and kube-controller-manager
/// leave each other (a beat of 10 s).
const SUSPENDED: TimeDelta = TimeDelta::seconds(5);

/// Reads the time of day, whatever was done to the clock.
pub(crate) type WallClock = fn() -> DateTime<Utc>;

/// Remembers the end of the last suspension. Clones share it.
#[derive(Clone, Debug)]
pub struct SuspendDetector {
    clock: Clock,
    wall_clock: WallClock,
    ticks: Arc<Mutex<Ticks>>,
}

#[derive(Debug)]
struct Ticks {
    last: Moment,
    /// Wall clock at that time. A host that was suspended may find its monotonic clock where it left
    /// it, and its wall clock set forward.
    wall: DateTime<Utc>,
    resumed: Moment,
}

impl Ticks {
    fn tick(&mut self, now: Moment, wall: DateTime<Utc>) {
        let gap = (now - self.last).max(wall - self.wall);
        if gap > SUSPENDED {
            tracing::warn!(
                gap_s = gap.num_seconds(),
                "this process was suspended: it probes again before it writes anything"
            );
            self.resumed = now;
        }
        (self.last, self.wall) = (now, wall);
    }
}

impl SuspendDetector {
    /// Begins to watch; [`SuspendDetector::run`] must run from now on.
    pub fn new(clock: Clock, wall_clock: WallClock) -> Self {
        let ticks = Ticks {
            last: clock.now(),
            wall: wall_clock(),
            resumed: Moment::START,
        };
        Self {
            clock,
            wall_clock,
            ticks: Arc::new(Mutex::new(ticks)),
        }
    }

    /// Time at which the last suspension ended. A call notices one that has just ended, whoever runs
    /// first.
    pub(crate) fn resumed(&self) -> Moment {
        let mut ticks = self.ticks.lock();
        ticks.tick(self.clock.now(), (self.wall_clock)());
        ticks.resumed
    }

    pub async fn run(&self) {
        loop {
            sleep(TICK).await;
            self.resumed();
        }
    }

    /// Carries out work that rests on an observation at `since`, such as a write that may first wait
    /// for a connection. Drops it and returns `None` if there was a suspension in between, or is one
    /// before it is done.
    pub(crate) async fn run_unless_suspended<T>(
        &self,
        since: Moment,
        act: impl Future<Output = T>,
    ) -> Option<T> {
        let mut act = pin!(act);
        std::future::poll_fn(|context| match self.resumed() > since {
            true => Poll::Ready(None),
            false => act.as_mut().poll(context).map(Some),
        })
        .await
    }
}

#[cfg(test)]
mod tests;
