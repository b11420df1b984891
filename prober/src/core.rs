//! What decides: synchronous functions of values, `now` included. No client, no `async`, no logging, no clock in here.

pub mod lease;
pub mod lifecycle;
pub mod memory;
pub mod moment;
pub mod plan;
pub mod schedule;
mod sorted;
pub mod verdict;

#[cfg(test)]
mod model;
#[cfg(test)]
pub(crate) mod scene;
#[cfg(test)]
mod simulation;
