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
use common::process;

use self::commands::Cli;
use self::output::print_error;

/// Runs the agent or command that the words after the program's name ask for. Help and a wrong
/// command line end the process here, with 0 and 2.
pub fn run() -> ExitCode {
    let result = match Cli::parse() {
        Cli::Prober(args) => return process::run(Agent::Prober, args, prober::run),
        Cli::Weeder(args) => return process::run(Agent::Weeder, args, weeder::run),
        Cli::CheckConfig(args) => return check_config::run(&args),
        Cli::Completions { shell } => completions::run(shell),
        Cli::Status(args) => wait(status::run(args)),
        Cli::Explain(args) => wait(explain::run(args)),
        Cli::Restore(args) => wait(restore::run(args)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

fn wait(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = command => result,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
        }
    });
    runtime.shutdown_background();
    result
}
