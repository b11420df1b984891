//! Completion scripts and manual pages, made of what the program reads its words by.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::commands::Cli;
use crate::output::print;

pub(crate) fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(
        shell,
        &mut Cli::command(),
        "dependency-watchdog",
        &mut script,
    );
    print(str::from_utf8(&script)?)
}

pub(crate) fn man(folder: Option<&Path>) -> anyhow::Result<()> {
    if let Some(folder) = folder {
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
        return written.with_context(|| folder.display().to_string());
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    print(str::from_utf8(&page)?)
}
