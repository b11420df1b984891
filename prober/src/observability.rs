//! What the prober shows of itself: metrics, the status page and its JSON. The commands for
//! operators show the same.
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
mod page;
pub(crate) mod report;
pub(crate) mod shoot_statuses;
pub(crate) mod status;
pub(crate) mod tone;
