//! Random faults for minutes or hours against the real watchdog, judged by an independent oracle.
//!
//! ```text
//!   story: an actor for each shoot (outages, clocks, API faults, operators, gardenlet, life cycle), for the Services that its
//!          pods need, for the seed, the processes, and the configs
//!     |
//!     v
//!   world: a seed and 50 shoots in memory, one shoot with a real control plane  <--TLS--  agents: two probers and a weeder
//!     |                                     |                                             |
//!     | when did each node really renew?    | every write, as it is made                  | /proc, /metrics, logs
//!     v                                     v                                             v
//!   oracle: record (one per shoot): truth -> must, may --> judge --> violations <-------- idle: vitals, leaks
//! ```
//! The oracle shares no code with the watchdog. Exit code 0: nothing was found; 1: something was,
//! with its evidence; 2: the command line is wrong.

mod agents;
mod idle;
mod options;
mod oracle;
mod pace;
mod report;
mod run;
mod sabotage;
mod shoot;
mod story;
mod world;

use anyhow::Result;
use clap::Parser;

fn main() -> Result<()> {
    let options = options::SoakOptions::parse();
    testbed::with_bed(async |bed| run::run(bed, &options).await)
}
