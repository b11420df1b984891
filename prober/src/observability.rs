//! Metrics, the status page and its JSON. The commands for operators show the same.
//!
//! ```text
//! tasks of the shoots --report--> ShootStatuses --> gauges
//!                             |                '--snapshot--> status --> page, JSON, commands
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
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod tone;
mod waits;
pub(crate) mod why;

use chrono::TimeDelta;

/// A span as it is shown: in seconds, to the millisecond.
fn in_seconds(span: TimeDelta) -> f64 {
    span.num_milliseconds() as f64 / 1000.0
}

/// A span in JSON: the same.
mod seconds {
    use chrono::TimeDelta;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        span: &TimeDelta,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(super::in_seconds(*span))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<TimeDelta, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Ok(TimeDelta::milliseconds((seconds * 1000.0).round() as i64))
    }
}
