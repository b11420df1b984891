//! The commands for operators, with their own kubeconfig. They work also where no watchdog runs,
//! and write nothing to a cluster, but for `restore --yes`.
//!
//! ```text
//! words --commands--> status | explain | probe --seed--> the prober's own views and probe, read only --> report --output--> stdout
//!                 '-> restore --seed--> the same, and the prober's own machine and writes
//!                 '-> check-config --> every error with its place
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
mod outages;
mod output;
mod probe;
mod restore;
mod seed;
mod shell;
mod status;
mod why;

use std::ffi::OsString;
use std::iter;
use std::process::ExitCode;

use clap::Parser;
use common::flags::CLI_COMMANDS;

use self::commands::Cli;
use self::output::with_causes;

/// Runs the command that the first word names; none when it names none of these.
pub fn run(words: &[OsString]) -> Option<ExitCode> {
    let first = words.first()?.to_str()?;
    let named = if first == "help" {
        words.get(1)?.to_str()?
    } else {
        first
    };
    let is_ours =
        CLI_COMMANDS.iter().any(|(name, _)| *name == named) || matches!(first, "--version" | "-V");
    if !is_ours {
        return None;
    }
    let program = OsString::from("dependency-watchdog");
    // `help COMMAND` as `COMMAND --help`, since `help` is the agents' word already.
    let words: Vec<OsString> = if first == "help" {
        vec![named.into(), "--help".into()]
    } else {
        words.to_vec()
    };
    // Ends the process with 2 where they are wrong, with 0 after help.
    Some(execute(Cli::parse_from(iter::once(program).chain(words))))
}

fn execute(command: Cli) -> ExitCode {
    let result = match command {
        Cli::CheckConfig(args) => return check_config::run(&args),
        Cli::Completions { shell } => shell::completions(shell),
        Cli::Man { folder } => shell::man(folder.as_deref()),
        Cli::Status(args) => wait(status::run(args)),
        Cli::Explain(args) => wait(explain::run(args)),
        Cli::Probe(args) => wait(probe::run(args)),
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_program_lists_exactly_the_commands_that_there_are() {
        let about = |command: &clap::Command| {
            command
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default()
        };
        let defined: Vec<_> = Cli::command()
            .get_subcommands()
            .map(|command| (command.get_name().to_owned(), about(command)))
            .collect();
        let listed: Vec<_> = CLI_COMMANDS
            .iter()
            .map(|(name, purpose)| ((*name).to_owned(), (*purpose).to_owned()))
            .collect();
        assert_eq!(defined, listed);
    }
}
