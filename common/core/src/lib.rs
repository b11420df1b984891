//! Plain types that the agents' cores stand on, and everything else through `common`: no I/O, no
//! clock, no client.

#![cfg_attr(not(test), warn(unreachable_pub))]

pub mod backoff;
pub mod change;
pub mod duration;
pub mod flag;
pub mod null;
pub mod plural;
pub mod span;
