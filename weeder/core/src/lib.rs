//! What decides for the weeder: synchronous functions of values, `now` included. No client, no
//! `async`, no logging, no clock in here.
//!
//! ```text
//! slices --readiness--> not ready -> ready --window--> open?
//!                                                        |
//! pods --verdict--> in CrashLoopBackOff, may be deleted -+--deletion--> to be sent
//!                                                              ^--- how it ended
//! ```
//! [`namespaces`] is where all of it meets.

#![allow(
    missing_docs,
    reason = "only this binary uses the crate: a name that needs no words gets none"
)]
#![allow(
    clippy::disallowed_types,
    reason = "an Instant is a value here: only tests read a clock"
)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "no test waits"))]
#![cfg_attr(not(test), warn(unreachable_pub))]

pub mod config;
pub mod deletion;
pub mod namespaces;
pub mod news;
pub mod pod;
pub mod readiness;
pub mod selector;
pub mod verdict;
mod window;
