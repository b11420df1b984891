//! Completion scripts and manual pages, made from the very tables that the program reads its words
//! by.

use std::path::Path;

use anyhow::Context;
use clap::{ArgAction, Command, CommandFactory};
use clap_complete::Shell;
use common::flags;

use crate::commands::Cli;
use crate::output::print;

/// All of the program: the commands for operators, and the agents with their flags.
fn program() -> Command {
    let agents = flags::Agent::ALL.iter().map(|agent| {
        let command = Command::new(agent.name())
            .about(agent.purpose())
            .args(flags::command().get_arguments());
        command.mut_args(|flag| {
            if flags::is_switch(&flag) {
                flag.action(ArgAction::SetTrue)
            } else {
                flag.hide_default_value(true)
            }
        })
    });
    Cli::command().subcommands(agents)
}

pub(crate) fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program(), "dependency-watchdog", &mut script);
    print(str::from_utf8(&script)?)
}

pub(crate) fn man(folder: Option<&Path>) -> anyhow::Result<()> {
    if let Some(folder) = folder {
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(program(), folder));
        return written.with_context(|| folder.display().to_string());
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(program()).render(&mut page)?;
    print(str::from_utf8(&page)?)
}
