//! Keeps a shoot's machines from being replaced while its nodes cannot reach their API server.
//!
//! It watches, on the seed, Clusters, Machines, the kubeconfig Secrets and the dependents (the
//! controllers to be held down), and polls, on each shoot, the leases of the nodes and, when they
//! matter, the nodes.
//!
//! ```text
//! seed API --watch--> Cluster --lifecycle--> one task per shoot (manager, task)
//!          --watch--> Secret, Machines, dependents: pruned, in memory (seed)
//!                                  |
//! shoot API <--shoot_client- probe: leases [, nodes]
//!                                  | lease clock -> candidates -> verdict -> next probe, next write   (prober_core)
//!                                  v
//!                 permit -> one write per resource (write) -> seed API
//!      all is well: rehearsal -> the same as a dry run --------'
//! ```
//!
//! [`prober_core`] decides and does nothing else; the other modules read, carry out and report.

#![cfg_attr(not(test), warn(clippy::too_many_lines, unreachable_pub))]

pub mod agent;
pub mod clock;
pub mod config;
pub mod gardener;
pub mod manager;
mod observability;
mod owner;
mod rehearsal;
pub mod seed;
pub mod shared;
pub mod shoot_client;
mod suspend_detector;
mod task;
pub mod write;

pub use agent::{Host, run, run_on};
pub use observability::facts::{Fact, describe_verdict, lease_cells};
pub use observability::outage::Outage;
pub use observability::status::ProberStatus;
pub use observability::view::ShootView;
pub use owner::Standing;

#[cfg(test)]
mod tests;
