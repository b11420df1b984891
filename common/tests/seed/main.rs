//! The client for the seed and the views that it fills, against an API server in memory.

mod client;
mod watches;
