//! Plain types shared by the cores of both agents and, through `common`, by everything else: no
//! I/O, no clock, no client.

#![cfg_attr(not(test), warn(unreachable_pub))]

pub mod backoff;
pub mod change;
pub mod duration;
pub mod flag;
pub mod null;
pub mod plural;
pub mod span;
