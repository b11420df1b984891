//! What the soak and the kills have in common: how a write of the watchdog is judged, who leads,
//! and the pods that its weeder looks after.
//!
//! None of it shares code with the watchdog.

pub mod fences;
pub mod pods;
pub mod writes;
