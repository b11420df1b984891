//! Plain types and functions that the agents' cores share with each other or with `common`: no I/O,
//! no clock, no client.

#![cfg_attr(not(test), warn(clippy::too_many_lines, unreachable_pub))]

pub mod backoff;
pub mod change;
