//! Decision logic of the weeder: synchronous functions of values, `now` included. No client, no
//! `async`, no logging and no clock.
//!
//! ```text
//! EndpointSlices --readiness--> not ready -> ready --window--> open?
//!                                                                |
//! pods --verdict--> crash-looping, may be deleted --tracked_pod--+--> deletions to send
//!                                                        ^--- their outcomes ---'
//! ```
//! [`namespaces`] combines all of it, one `namespace` at a time.

#![allow(
    clippy::disallowed_types,
    reason = "an Instant is a value here: only tests read a clock"
)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "no test waits"))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, unreachable_pub))]

pub mod config;
pub mod deletion;
mod hold_back;
mod namespace;
pub mod namespaces;
pub mod pod;
mod queue;
pub mod readiness;
pub mod selector;
mod tracked_pod;
pub mod verdict;
pub mod window;
