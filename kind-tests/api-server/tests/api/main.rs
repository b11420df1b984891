//! The server as a plain HTTP client sees it, where it is more than what any API server answers
//! (`conformance`): who may do what, faults, what a test does to the store, protobuf.

#[cfg(test)]
mod access;
#[cfg(test)]
mod client;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod protobuf;
#[cfg(test)]
mod store;
