//! Shortens the recovery of pods that crash-looped while a Service they need was down.
//!
//! It watches, on the seed, the EndpointSlices of the configured Services and the pods that depend
//! on them, and deletes those that wait in CrashLoopBackOff once their Service is ready again.
//!
//! ```text
//! seed API --watch--> EndpointSlices --slice--.
//!          --watch--> pods -----------pod-----+--> core: windows --due--> DELETE with UID --> seed API
//!                                                    ^---------- outcome ---------'
//! ```
//!
//! [`weeder_core`] decides and does nothing else; the modules here decide nothing.

#![cfg_attr(not(test), warn(clippy::too_many_lines, unreachable_pub))]

pub mod agent;
pub mod config;
pub mod controller;
pub mod delete;
pub mod heartbeat;
pub mod metrics;
pub mod pod;
pub mod slice;
pub mod status;
pub mod watches;

pub use agent::{run, run_on};
