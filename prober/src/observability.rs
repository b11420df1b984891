//! What the prober shows of itself: metrics, the status page and its JSON. The commands for
//! operators show the same.
//!
//! ```text
//! tasks of the shoots --report--> ShootStatuses --> gauges
//!                             |                '--> status --> page, JSON, commands
//!                             '-> counters
//! ```

mod age_bar;
pub mod facts;
mod gauges;
pub mod metrics;
mod page;
pub(crate) mod report;
pub mod shoot_statuses;
pub mod status;
