//! A Kubernetes API server in memory, inside the process that uses it: for the demo, for scripted
//! faults and for load.
//!
//! ```text
//!             TLS, HTTP/1.1 on a free loopback port
//!  client ──► connection ──► request log ──► script of faults ──► token, rules ──► store ──► JSON or protobuf
//!                                                                                   ▲
//!  test   ──► Store (synchronous: create, patch, delete, wait) ─────────────────────┘
//! ```
//! It answers what a real server would on the same paths: lists (selectors, pages from one moment),
//! watches (bookmarks, 410), merge patches and updates with conflicts, the scale subresource,
//! discovery, self access reviews. It knows no admission, no controllers, no strategic or
//! server-side-apply patches, no dry runs. Namespaces need not exist before their objects.

mod access;
mod computed;
mod content;
mod discovery;
mod faults;
pub mod full_size;
mod handler;
mod list_page;
mod object;
mod objects;
pub mod protobuf;
mod reply;
mod requests;
mod resource;
mod route;
mod scale;
mod selector;
mod server;
mod shared;
mod status;
mod store;
mod watching;

pub use access::{Rule, Tokens, User};
pub use computed::ComputedLists;
pub use faults::{Fault, FaultId, Faults, When};
pub use reply::{Closed, Wire};
pub use requests::{Record, Requests};
pub use resource::Resource;
pub use server::{MemoryApi, kubeconfig};
pub use shared::{ConnectionCounts, Network, Options};
pub use status::ApiError;
pub use store::{ObservedWrite, Store};
