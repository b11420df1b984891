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
