//! Points on the process's monotonic clock, and request times, which relate it to the wall clock.

use std::ops::{Add, Sub};

use chrono::{DateTime, TimeDelta, Utc};

/// A point on the process's monotonic clock, in nanoseconds since the process started; negative for
/// earlier ones. Steps of the wall clock do not affect it. Saturates at 292 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    pub const START: Self = Self(0);
    /// Later than any other.
    pub const NEVER: Self = Self(i64::MAX);

    pub const fn since_start(span: TimeDelta) -> Self {
        Self(nanoseconds(span))
    }

    pub const fn elapsed_since_start(self) -> TimeDelta {
        TimeDelta::nanoseconds(self.0)
    }
}

const fn nanoseconds(span: TimeDelta) -> i64 {
    match span.num_nanoseconds() {
        Some(nanoseconds) => nanoseconds,
        None if span.num_seconds() < 0 => i64::MIN,
        None => i64::MAX,
    }
}

impl Add<TimeDelta> for Moment {
    type Output = Self;
    fn add(self, span: TimeDelta) -> Self {
        Self(self.0.saturating_add(nanoseconds(span)))
    }
}

impl Sub<TimeDelta> for Moment {
    type Output = Self;
    fn sub(self, span: TimeDelta) -> Self {
        Self(self.0.saturating_sub(nanoseconds(span)))
    }
}

impl Sub for Moment {
    type Output = TimeDelta;
    fn sub(self, earlier: Self) -> TimeDelta {
        TimeDelta::nanoseconds(self.0.saturating_sub(earlier.0))
    }
}

/// Times of a request to an API server.
///
/// A most-recent response shows a state no older than `sent`, and everything in it happened before
/// `received`. Judging by `sent` prevents a slow response from making a lease look older than it
/// is.
#[derive(Clone, Copy, Debug)]
pub struct RequestTimes {
    pub sent: Moment,
    pub received: Moment,
    /// Wall clock at `received`. Used only to map timestamps of other hosts to our clock.
    pub wall: DateTime<Utc>,
}

impl RequestTimes {
    /// Maps a wall-clock timestamp to our monotonic clock, using the wall clock at `received`.
    pub fn place(&self, stamp: DateTime<Utc>) -> Moment {
        self.received - (self.wall - stamp)
    }
}

#[cfg(test)]
mod tests;
