//! Metrics, the status page and its JSON. The commands for operators show the same.
//!
//! ```text
//! tasks of the shoots --report--> ShootStatuses --> gauges
//!                             |                '--> status --> page, JSON, commands
//!                             '-> counters
//! ```

mod age_bar;
pub(crate) mod facts;
mod gauges;
pub(crate) mod metrics;
pub(crate) mod outage;
pub(crate) mod outcome;
mod page;
pub(crate) mod report;
pub(crate) mod settings;
pub(crate) mod shoot_statuses;
pub(crate) mod status;
pub(crate) mod tone;
mod waits;
mod zones;

use chrono::TimeDelta;
use serde::Serializer;

/// A span as it is shown: in seconds, to the millisecond.
fn in_seconds(span: TimeDelta) -> f64 {
    span.num_milliseconds() as f64 / 1000.0
}

/// Serializes as the word for it.
fn word<T, S>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
where
    T: Copy + Into<&'static str>,
    S: Serializer,
{
    serializer.serialize_str((*value).into())
}
