//! The real binary, killed before and after every single write that it makes, against a seed and a
//! shoot in memory.
//!
//! ```text
//! a run without a kill --> its writes --> for each: one run with a kill before it, one with a kill after it
//!                                              |
//!   seed in memory: holds the fatal write up --+--> SIGKILL --> another process --> the end of the story
//!        '--> ledger: judges every single change at the moment it is made
//! ```
//!
//! Eight runs for each processor go side by side: they mostly wait.

mod clocks;
mod explorer;
mod ledger;
mod replicas;
mod scaling;
mod weeding;
mod world;
