//! What decides: synchronous functions of values, `now` included. No client, no `async`, no logging, no clock in here.

pub mod judgement;
pub mod known;
pub mod lease;
pub mod lifecycle;
pub mod moment;
pub mod options;
pub mod owner;
pub mod plan;
pub mod replicas;
pub mod retry;
pub mod scaling;
pub mod schedule;
pub mod shoot;
mod sorted;
pub mod verdict;
pub mod zones;

use chrono::TimeDelta;

/// A duration of the config as a span of the core's time; one beyond reason is the longest there is.
pub fn span(duration: std::time::Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

#[cfg(test)]
pub(crate) mod tests;
