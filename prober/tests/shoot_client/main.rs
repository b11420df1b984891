//! The shoot client against an API server in this process, over real TLS connections on loopback.
//!
//! Budgets are short here and every probe has a deadline beyond its budget, so that one that hangs
//! fails its test.

mod allocations;
mod credentials;
mod failures;
mod healthy;
mod network;
mod paging;
mod shoot;
