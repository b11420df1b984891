//! The time of day in the world of a test.

use std::cell::Cell;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

thread_local! {
    /// When the world of this thread began, where tokio's clock is the only one.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Ties the time of day to tokio's clock, from a fixed time on, for all that this thread does.
pub fn follow_tokio() {
    BEGAN.set(BEGAN.get().or_else(|| Some(Instant::now())));
}

pub fn now() -> DateTime<Utc> {
    let Some(began) = BEGAN.get() else {
        return Utc::now();
    };
    let elapsed = TimeDelta::from_std(began.elapsed()).unwrap_or_default();
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + elapsed
}
