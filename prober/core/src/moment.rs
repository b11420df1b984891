//! Points on our own monotonic clock, and the times of requests, which connect it with the wall
//! clock.

use std::ops::{Add, Sub};

use chrono::{DateTime, TimeDelta, Utc};

/// A point on this process's monotonic clock: the time since the process began, in nanoseconds,
/// negative for what happened before. Never affected by a step of the wall clock. What is further
/// away than 292 years is taken to be as far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    pub const START: Self = Self(0);

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

/// When one answer of the API server was asked for and got.
///
/// A most-recent answer shows a state no older than `sent`; what it shows had happened by
/// `received`. Judging by `sent` means that a slow answer cannot make a lease seem older than it
/// is.
#[derive(Clone, Copy, Debug)]
pub struct RequestTimes {
    pub sent: Moment,
    pub received: Moment,
    /// What the wall clock said at `received`; used only to place the stamps of other machines'
    /// clocks on ours.
    pub wall: DateTime<Utc>,
}

impl RequestTimes {
    /// Where on our monotonic clock a wall-clock stamp lies, by what the wall clock says at
    /// `received`.
    pub fn place(&self, stamp: DateTime<Utc>) -> Moment {
        self.received - (self.wall - stamp)
    }
}

#[cfg(test)]
mod tests;
