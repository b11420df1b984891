//! Our readers against Go's, input by input.
//!
//! A difference is a defect of ours, but for those that are decided: each of them is a named exception in its test.

mod agreement;
mod clusters;
mod durations;
mod flags;
mod lists;
mod numbers;
mod prober_config;
mod selectors;
mod weeder_config;
mod yaml;
