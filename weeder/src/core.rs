//! What decides: synchronous functions of values, `now` included. No client, no `async`, no logging, no clock in here.
//!
//! ```text
//! slices --readiness--> not ready -> ready --window--> open?
//!                                                        |
//! pods --verdict--> in CrashLoopBackOff, may be deleted -+--deletion--> to be sent
//!                                                              ^--- how it ended
//! ```
//! [`namespaces`] is where all of it meets.

pub mod deletion;
pub mod namespaces;
pub mod news;
pub mod readiness;
pub mod selector;
pub mod verdict;
pub mod window;
