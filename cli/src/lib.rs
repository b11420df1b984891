//! The command line: the agents, and the commands for operators, with their own kubeconfig. These
//! show what the running prober says, or where none answers what the seed shows, and write nothing
//! to a cluster, but for `restore --yes`.
//!
//! ```text
//! words --commands--> prober | weeder -> common::process
//!                 '-> status | explain --seed--> replicas: what the prober says, else the seed's objects --output--> stdout
//!                 '-> restore --seed--> the same, and the prober's own machine and writes
//!                 '-> check-config --> what an agent would say of a config file
//!                 '-> completions, man
//! ```
//!
//! Answers go to stdout, everything else to stderr. Exit codes: 0 answered, 1 no answer, a config
//! that is refused or a shoot that is not restored, 2 a wrong command line.

#![cfg_attr(not(test), warn(clippy::too_many_lines, unreachable_pub))]

mod check_config;
mod commands;
mod config;
mod explain;
mod leader;
mod output;
mod replicas;
mod restore;
mod seed;
mod shell;
mod status;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::ErrorKind;
use common::flags::Agent;
use common::process;

use self::commands::{Cli, is_agent};
use self::output::with_causes;

/// Runs the agent or command that the words after the program's name ask for.
pub fn run(words: Vec<OsString>) -> ExitCode {
    let of_agent = is_agent(&words);
    match Cli::parse_words(words) {
        Ok(command) => execute(command),
        Err(refusal) => refuse(&refusal, of_agent),
    }
}

/// Prints help, or why the words cannot be understood: in one line if they are an agent's, for the
/// log of its pod, and with all commands if none has this name.
fn refuse(refusal: &clap::Error, of_agent: bool) -> ExitCode {
    let is_unknown = refusal.kind() == ErrorKind::InvalidSubcommand;
    if refusal.use_stderr() && (of_agent || is_unknown) {
        let text = refusal.render().to_string();
        let why: Vec<_> = text.lines().take_while(|line| !line.is_empty()).collect();
        anstream::eprintln!("{}", why.join(" "));
    } else {
        // A closed pipe is none of our business.
        let _ = refusal.print();
    }
    if is_unknown {
        anstream::eprint!("\n{}", Cli::command().render_help().ansi());
    }
    ExitCode::from(u8::try_from(refusal.exit_code()).unwrap_or(u8::MAX))
}

fn execute(command: Cli) -> ExitCode {
    let result = match command {
        Cli::Prober(args) => return process::run(Agent::Prober, args, prober::run),
        Cli::Weeder(args) => return process::run(Agent::Weeder, args, weeder::run),
        Cli::CheckConfig(args) => return check_config::run(&args),
        Cli::Completions { shell } => shell::completions(shell),
        Cli::Man { folder } => shell::man(folder.as_deref()),
        Cli::Status(args) => wait(status::run(args)),
        Cli::Explain(args) => wait(explain::run(args)),
        Cli::Restore(args) => wait(restore::run(args)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {}", with_causes(error.as_ref()));
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
