//! Decisions of the prober: synchronous functions of values, `now` included. No client, no `async`,
//! no logging, no clock in here, and nothing that is only shown.

#![cfg_attr(not(test), warn(clippy::too_many_lines, unreachable_pub))]

pub mod config;
mod dependent;
pub mod gardener;
mod horizon;
pub mod judgement;
pub mod lease;
pub mod lifecycle;
pub mod moment;
mod object_view;
pub mod options;
pub mod plan;
pub mod refusal;
pub mod replicas;
pub mod shoot;
mod sorted;
pub mod template;
pub mod verdict;

use chrono::TimeDelta;

/// Converts a duration, capped at the longest `TimeDelta`.
pub fn span(duration: std::time::Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}

/// Multiplies a span, with microsecond precision.
pub fn scaled(span: TimeDelta, share: f64) -> TimeDelta {
    TimeDelta::microseconds((span.num_microseconds().unwrap_or(i64::MAX) as f64 * share) as i64)
}

#[cfg(test)]
pub(crate) mod tests;
