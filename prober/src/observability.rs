//! Metrics, the status page and its JSON. The commands for operators show the same.
//!
//! ```text
//! task of a shoot --report--> log, counters, Events
//!                 '-publish-> ShootView --> gauges
//!                                 '--status--> JSON, and by its facts page and commands
//! ```

pub(crate) mod facts;
mod gauges;
pub(crate) mod metrics;
pub(crate) mod outage;
mod page;
pub(crate) mod report;
pub(crate) mod shoot_statuses;
pub(crate) mod status;
pub(crate) mod view;

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
