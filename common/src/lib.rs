//! What both agents stand on: the command line, the config file, logging, the process itself.
//!
//! ```text
//! args -> flags::parse -> AgentArgs -> process::run --starts--> an agent
//! file -> document::read -> Object -> (the agent's own config) | ConfigError with every error in it
//! tracing -> logging -> zap's JSON lines on stderr
//! seed_client -> Client -> leader_election -> Fence: whether this replica may write
//!                      '-> events -> what people read in `kubectl describe`
//! ```
//!
//! It knows neither agent.

pub mod config_file;
pub mod document;
pub mod events;
pub mod flags;
pub mod follow;
pub mod frame;
pub mod go_duration;
pub mod health;
pub mod http;
pub mod leader_election;
pub mod logging;
pub mod metrics;
pub mod process;
pub mod seed_client;
pub mod view;
