//! Notices that this process stood still: suspended, starved, or moved in time with its whole machine. What was found out
//! before is out of date then, and timers that were set before all fire together: nothing may be written on either.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::sleep;

use crate::clock::Clock;
use crate::core::moment::Moment;

/// How often this process shows itself that it runs.
const BEAT: Duration = Duration::from_secs(1);
/// A gap between two beats that is longer than this is a standstill: far more than a busy machine makes of a second, and less
/// than the margin that kubelets and kube-controller-manager leave each other (a beat of 10 s).
const STALL: TimeDelta = TimeDelta::seconds(5);

/// Remembers the end of the last standstill. Clones share it.
#[derive(Clone, Debug)]
pub struct Standstill {
    clock: Clock,
    beats: Arc<Mutex<Beats>>,
}

#[derive(Debug)]
struct Beats {
    last: Moment,
    /// What the wall clock said then. A machine that was suspended may find its monotonic clock where it left it, and its
    /// wall clock set forward.
    wall: DateTime<Utc>,
    resumed: Moment,
}

impl Beats {
    fn beat(&mut self, now: Moment, wall: DateTime<Utc>) {
        let gap = (now - self.last).max(wall - self.wall);
        if gap > STALL {
            tracing::warn!(gap_s = gap.num_seconds(), "this process stood still: it looks again before it writes anything");
            self.resumed = now;
        }
        (self.last, self.wall) = (now, wall);
    }
}

impl Standstill {
    /// Begins to watch for standstills; [`Standstill::beat`] must run from now on.
    pub fn new(clock: Clock) -> Self {
        let beats = Beats { last: clock.now(), wall: Utc::now(), resumed: Moment::START };
        Self { clock, beats: Arc::new(Mutex::new(beats)) }
    }

    /// When the last standstill ended. One that has just ended is noticed by asking, whoever runs first.
    pub fn resumed(&self) -> Moment {
        let mut beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.beat(self.clock.now(), Utc::now());
        beats.resumed
    }

    /// Beats for ever.
    pub async fn beat(&self) {
        loop {
            sleep(BEAT).await;
            self.resumed();
        }
    }

    /// Does something that rests on what was found out at `since`, such as a write that may first wait for a connection. None
    /// when there was a standstill between the two, or is one before it is done; it is then dropped.
    pub async fn unless_since<T>(&self, since: Moment, act: impl Future<Output = T>) -> Option<T> {
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
