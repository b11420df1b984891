//! Shortens the way back for pods that crash-looped while a Service they need was away.
//!
//! It watches, on the seed, the EndpointSlices of the configured Services and the pods that depend
//! on them, and deletes those that wait in CrashLoopBackOff once their Service is back.
//!
//! ```text
//! seed API --watch--> EndpointSlices --slice--.
//!          --watch--> pods -----------pod-----+--> core: windows --due--> DELETE with UID --> seed API
//!                                                    ^------- how it ended -------'
//! ```
//!
//! [`weeder_core`] decides and does nothing else; all other modules do and decide nothing.

#![allow(
    missing_docs,
    reason = "only this binary uses the crate: a name that needs no words gets none"
)]

pub mod agent;
pub mod config;
pub mod controller;
pub mod delete;
pub mod metrics;
pub mod pod;
pub mod pulse;
pub mod slice;
pub mod status;
pub mod watches;

pub use agent::run;
