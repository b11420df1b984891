//! The server as a plain HTTP client sees it.

#[cfg(test)]
mod client;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod protobuf;
#[cfg(test)]
mod watches;
#[cfg(test)]
mod writes;
