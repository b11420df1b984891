//! The real binary beside a real kube-controller-manager and a real machine-controller-manager,
//! which replaces machines.
//!
//! ```text
//! nodes --leases--> kube-controller-manager: Unknown --> machine-controller-manager: Machine Failed, its VM deleted, another made
//!            '----> prober: both at 0 before that
//! ```
//! All times are half of Gardener's, but for how long machine-controller-manager bears an unhealthy
//! node. The scenario takes two minutes, most of them waiting, and prints what happens for a person
//! who watches (`make demo-real`).

mod cloud;
mod journal;
mod machine_controller_manager;
mod outage;
mod world;
