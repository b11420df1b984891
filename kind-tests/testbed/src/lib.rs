//! The testbed: Gardener's world on loopback, real where it matters, with no container engine.
//!
//! ```text
//!            etcd (one, in memory)
//!              |        |
//!   seed API server   shoot API servers <---- nodes: leases renewed, cut, skewed, healed
//!     |   |   ^          ^     ^
//!     |   |   |          |     +------------- kube-controller-manager (gives nodes up, writes endpoints)
//!     |   |   |          |     '------------- machine-controller-manager, in the scenario with VMs
//!     |   |   +--- dependency-watchdog prober: the real binary, with Gardener's RBAC and arguments
//!     |   +------- kubelets: a stand-in that lets readyReplicas follow replicas
//!     +----------- journal: every change of a dependent resource, in order
//! ```
//!
//! What needs no real control plane has a seed and shoots in memory instead ([`memory`]), on
//! [`api_server`].
//!
//! [`Testbed`] holds what all scenarios of a test process share, [`SeedCluster`] is a control plane
//! with Gardener's resources and roles, [`ShootCluster`] is one cluster whose control plane lives
//! in a namespace of a seed. What Gardener itself deploys, and what it finds, is said by its own
//! code ([`gardenlet`]). Everything that is started ends with the test process, however that ends
//! ([`reaper`]), and what the programs under test log is searched for credentials ([`secrets`]).

pub mod agent;
pub mod audit;
pub mod bed;
pub mod control_plane;
pub mod crash_loop;
pub mod dns;
pub mod followed;
pub mod full_size;
pub mod gardener;
pub mod gardenlet;
pub mod go_programs;
pub mod installation;
pub mod kube_api;
pub mod kubelets;
pub mod log;
pub mod memory;
pub mod network;
pub mod objects;
pub mod page;
pub mod pod;
pub mod prober;
pub mod process;
pub mod reaper;
pub mod renewers;
pub mod secrets;
pub mod seed;
pub mod service;
pub mod shoot;
mod stalls;
pub mod usage;
pub mod wait;
pub mod wall;

pub use api_server::PATIENCE;
pub use bed::{Testbed, scenario, with_bed};
pub use followed::Followed;
pub use kube_api::KubeApi;
pub use pod::{DeploymentPod, kube_controller_manager};
pub use prober::{ProberConfig, start_prober};
pub use seed::SeedCluster;
pub use service::{EndpointWatch, WebService};
pub use shoot::{ShootCluster, ShootPlan};
pub use stalls::tolerating_stalls;
pub use wait::{eventually, eventually_within};
