//! What the soak and the kills have in common: how a write of the watchdog is judged, and who
//! leads.
//!
//! None of it shares code with the watchdog.

pub mod fences;
pub mod writes;
