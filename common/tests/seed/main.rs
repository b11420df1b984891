//! The client for the seed and the views that it fills, against an API server in memory.

#[cfg(test)]
mod client;
#[cfg(test)]
mod watches;
