//! The one place where tokio's clock and the core's moments meet.

use chrono::{DateTime, Utc};
use prober_core::moment::{Moment, RequestTimes};
use prober_core::span;
use tokio::time::{Instant, sleep_until};

#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    /// Wall time at `start`, read this once: were the clock to step forward by most of a lease's
    /// life later, all leases of all shoots would seem expired together.
    wall: DateTime<Utc>,
}

impl Clock {
    pub fn start(wall: DateTime<Utc>) -> Self {
        Self {
            start: Instant::now(),
            wall,
        }
    }

    pub fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    /// The moment of an instant; what lies before the start is the start.
    pub fn moment(&self, instant: Instant) -> Moment {
        Moment::since_start(span(instant.saturating_duration_since(self.start)))
    }

    /// Wall time of this moment, counted from the reading at the start of this process.
    pub fn wall(&self, moment: Moment) -> DateTime<Utc> {
        self.wall + moment.elapsed_since_start()
    }

    /// Waits until then; forever if `None`.
    pub(crate) async fn reach(&self, moment: Option<Moment>) {
        let Some(moment) = moment else {
            return std::future::pending().await;
        };
        let since_start = moment.elapsed_since_start().to_std();
        sleep_until(self.start + since_start.unwrap_or_default()).await;
    }

    /// Times of a request that was sent at `sent` and whose answer is complete now.
    pub(crate) fn request_times(&self, sent: Moment) -> RequestTimes {
        let received = self.now();
        RequestTimes {
            sent,
            received,
            wall: self.wall(received),
        }
    }
}
