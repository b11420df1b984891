//! Completion scripts, made of what the program reads its words by.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::commands::Cli;
use crate::output::print;

pub(crate) fn run(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    clap_complete::generate(shell, &mut command, "dependency-watchdog", &mut script);
    print(str::from_utf8(&script)?)?;
    Ok(ExitCode::SUCCESS)
}
