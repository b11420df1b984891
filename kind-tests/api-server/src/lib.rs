//! A Kubernetes API server in memory, inside the process that uses it: for tests of clients, for
//! scripted faults and for load. It knows nothing of any client.
//!
//! ```text
//!             TLS, HTTP/1.1 on a free loopback port
//!  client ──► connection ──► request log ──► script of faults ──► token, rules ──► store ──► JSON or protobuf
//!                                                                                   ▲
//!  test   ──► Store (synchronous: create, patch, delete, wait) ─────────────────────┘
//! ```
//!
//! Start it, give the client its kubeconfig, script what goes wrong, look at what was asked:
//!
//! ```no_run
//! # async fn example(object: serde_json::Value) -> anyhow::Result<()> {
//! use api_server::{Authority, Fault, MemoryApi, Options, When};
//!
//! let server = MemoryApi::start(&Authority::new()?, Options::default()).await?;
//! let kubeconfig = server.kubeconfig("admin");
//! server.store().create(object).expect("a kind of the server");
//! server.faults().add(When::verb("patch", "deployments.apps").once(), Fault::throttle(2));
//! // ... the client does its work ...
//! assert_eq!(server.requests().count(|request| request.status == Some(429)), 1);
//! # Ok(())
//! # }
//! ```
//!
//! | | |
//! |---|---|
//! | [`Options`], [`Resource`] | what it serves beside [`Resource::built_in`], and how |
//! | [`conformance`] | a table of requests, which it answers as a kube-apiserver does |
//! | [`MemoryApi::store`] | the objects: create, change, delete, list and observe them; break watches, compact |
//! | [`MemoryApi::faults`] | which requests meet which [`Fault`] |
//! | [`MemoryApi::set_network`] | the way to the server: up, refused, silent |
//! | [`MemoryApi::requests`] | each request as a [`Record`], and how many there were |
//! | [`MemoryApi::access`] | tokens, and what their users may do |
//! | [`MemoryApi::computed`], [`protobuf`] | lists computed when they are asked for, for large fleets |
//!
//! It answers what a kube-apiserver would on the same paths: lists (selectors, pages from one
//! moment), watches from a version on (bookmarks, 410), merge patches with conflicts, and what it
//! passes on to pods. It knows no admission, defaults or validation, no status of its own path, no
//! generations, no controllers, no strategic or server-side-apply patches, dry runs of patches
//! alone, and updates of Leases alone. Namespaces need not exist before their objects, and pods have
//! no grace.

mod access;
mod authority;
mod computed;
pub mod conformance;
mod counter;
mod faults;
mod handler;
mod list_page;
mod object;
mod objects;
mod pods;
pub mod protobuf;
mod reply;
mod requests;
mod resource;
mod route;
mod selector;
mod server;
mod shared;
mod status;
mod store;
mod watching;

use std::time::Duration;

pub use access::{Rule, Tokens, User};
pub use authority::{Authority, Serving};
pub use computed::ComputedLists;
pub use faults::{Fault, FaultId, Faults, When};
pub use reply::{Closed, Wire};
pub use requests::{Record, Requests};
pub use resource::Resource;
pub use server::{MemoryApi, kubeconfig};
pub use shared::{ConnectionCounts, Network, Options};
pub use status::ApiError;
pub use store::{ObservedWrite, Store};

/// How long a test waits for what should happen. Far more than anything takes, also on a machine
/// that does much at once: it is waited in full only where something is wrong.
pub const PATIENCE: Duration = Duration::from_secs(180);
