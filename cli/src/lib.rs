//! The command line: the agents, and the commands for operators, with their own kubeconfig. These
//! show what one running prober says, and write nothing to a cluster, but for `restore --yes`.
//!
//! ```text
//! words --commands--> prober | weeder -> common::process
//!                 '-> status | explain --ask--> the prober's status --output--> stdout
//!                 '-> restore --ask--> which shoots --> one write for each controller
//!                 '-> check-config --> what an agent would say of a config file
//!                 '-> completions
//! ```
//!
//! Answers go to stdout, everything else to stderr. Exit codes: 0 answered, 1 no answer, a config
//! that is refused or a shoot that is not restored, 2 a wrong command line.

#![cfg_attr(not(test), warn(clippy::too_many_lines, unreachable_pub))]

mod ask;
mod check_config;
mod commands;
mod completions;
mod config;
mod explain;
mod output;
mod restore;
mod status;

use std::process::ExitCode;

use clap::Parser;
use common::flags::Agent;
use common::logging::with_causes;
use common::process;
use tokio::runtime::Runtime;

use self::commands::Cli;
use self::output::complain;

/// Runs the agent or command that the words after the program's name ask for. Help and a wrong
/// command line end the process here, with 0 and 2.
pub fn run() -> ExitCode {
    let result = match Cli::parse() {
        Cli::Prober(args) => return process::run(Agent::Prober, args, prober::run),
        Cli::Weeder(args) => return process::run(Agent::Weeder, args, weeder::run),
        Cli::CheckConfig(args) => check_config::run(&args),
        Cli::Completions { shell } => completions::run(shell),
        Cli::Status(args) => wait(status::run(args)),
        Cli::Explain(args) => wait(explain::run(args)),
        Cli::Restore(args) => wait(restore::run(args)),
    };
    result.unwrap_or_else(|error| {
        complain(&with_causes(error.as_ref()));
        ExitCode::FAILURE
    })
}

fn wait(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<ExitCode> {
    let runtime = Runtime::new()?;
    let result = runtime.block_on(command);
    // Does not wait for a name that is still being looked up.
    runtime.shutdown_background();
    result.map(|()| ExitCode::SUCCESS)
}
