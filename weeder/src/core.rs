//! What decides: synchronous functions of values, `now` included. No client, no `async`, no logging, no clock in here.
//!
//! ```text
//! slices --readiness--> not ready -> ready --window--> open?
//!                                                        |
//! pods --verdict--> in CrashLoopBackOff, may be deleted -+--namespace--> deletions to send
//!                                                              ^--- how they ended
//! ```
//! A [`namespace`] is where everything meets that belongs together; [`namespaces`] are all of them, with what they share.

pub mod deletion;
pub mod namespace;
pub mod namespaces;
pub mod news;
pub mod readiness;
pub mod selector;
pub mod verdict;
pub mod window;
