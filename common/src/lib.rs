//! Foundation of both agents: the command line, the config file, logging, the runtime around their
//! work.
//!
//! ```text
//! flags::AgentArgs -> process::run --starts--> an agent
//! file -> document -> serde-saphyr -> (the agent's own config) | ConfigError; config_file reads it again and again
//! tracing -> logging -> JSON lines on stderr
//! transport: connections to API servers, by kube's kubeconfigs, TLS and credentials, for seed_client and for shoots; api_failure: what they answer instead
//! agent_runtime: /metrics, /healthz, /readyz, /statusz, and
//! seed_client -> Client -> objects -> reflector (lists and watches) -> view: what is known of the seed
//!                      '-> leader_election -> Election: whether this replica may write
//!                      '-> events -> what people read in `kubectl get events`
//! ```
//!
//! It knows neither agent.

#![cfg_attr(not(test), warn(clippy::too_many_lines, unreachable_pub))]

pub use common_core::change;

pub mod agent_runtime;
pub mod api_failure;
pub mod backoff;
pub mod config_file;
pub mod document;
pub mod events;
pub mod flags;
pub mod followed;
pub mod health;
mod http;
pub mod leader_election;
pub mod logging;
pub mod metrics;
pub mod objects;
pub mod process;
pub mod reflector;
pub mod seed_client;
pub mod status;
pub mod status_message;
pub mod text;
pub mod transport;
pub mod view;
