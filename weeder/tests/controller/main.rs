//! The weeder against an API server in memory: what it asks for, and what it deletes.

#[cfg(test)]
mod deleting;
#[cfg(test)]
mod log;
#[cfg(test)]
mod process;
#[cfg(test)]
mod work;
#[cfg(test)]
mod world;
