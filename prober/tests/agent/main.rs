//! The whole prober in this process, between a seed and a shoot that exist in memory only.
//!
//! The shoot gives its nodes up after 4 s, so that a lease expires after 3 s. Everything is awaited
//! with a deadline.

mod faults;
mod frugality;
mod life;
mod log;
mod operations;
mod order;
mod owner;
mod replaced;
mod scales;
mod self_hosted;
mod settings;
mod standby;
mod status;
mod storms;
mod world;
