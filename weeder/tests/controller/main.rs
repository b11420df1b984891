//! The weeder against an API server in memory: what it asks for, and what it deletes.

#[cfg(test)]
mod deleting;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod instruments;
#[cfg(test)]
mod leadership;
#[cfg(test)]
mod log;
#[cfg(test)]
mod pods;
#[cfg(test)]
mod process;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod seed;
#[cfg(test)]
mod services;
#[cfg(test)]
mod start;
