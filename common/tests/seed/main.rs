//! The client for the seed's API server, and the views that it fills.

#[cfg(test)]
mod bed;
#[cfg(test)]
mod client;
#[cfg(test)]
mod silence;
#[cfg(test)]
mod watches;
