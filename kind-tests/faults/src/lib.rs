//! Random faults for minutes or hours against the real watchdog, judged by an independent oracle.
//!
//! ```text
//!   story: an actor for each shoot (outages, API faults, operators, gardenlet, life cycle), for the Services that its
//!          pods need, for the seed, the processes, and the configs
//!     |
//!     v
//!   world: a seed and shoots in memory                                      <--TLS--  agents: two probers and a weeder
//!     |                                     |                                             |
//!     | when did each node really renew?    | every write, as it is made                  | /proc, /metrics, logs
//!     v                                     v                                             v
//!   oracle: record (one per shoot): truth -> must, may --> judge --> violations <-------- idle: vitals, leaks
//! ```
//! The oracle shares no code with the watchdog.
//!
//! A [`run`] takes real processes and real time. A [`life`] is the same on tokio's paused clock, with
//! the agents in this process. A [`script`] tells such a life step by step, instead of chance.

pub mod agents;
pub mod fences;
pub mod idle;
pub mod life;
pub mod options;
pub mod oracle;
pub mod pace;
pub mod run;
pub mod script;
pub mod shoot;
pub mod story;
pub mod world;
pub mod writes;
