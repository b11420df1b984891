//! The commands of the book and the README, run as they stand there with a kubectl that prints what
//! it is given.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// The folders of the pages.
const FOLDERS: [&str; 3] = ["", "docs", "docs/run-books"];

/// The blocks of shell of all pages, each with the name of its page.
///
/// # Errors
/// When a page cannot be read, or there are too few to be true.
pub fn blocks() -> Result<Vec<(String, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut blocks = Vec::new();
    for folder in FOLDERS {
        for entry in std::fs::read_dir(root.join(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".md") {
                continue;
            }
            let page = std::fs::read_to_string(root.join(folder).join(&name))?;
            for block in page.split("\n```sh\n").skip(1) {
                let (block, _) = block.split_once("\n```").with_context(|| name.clone())?;
                blocks.push((name.clone(), block.to_owned()));
            }
        }
    }
    ensure!(blocks.len() > 40, "only {} blocks", blocks.len());
    blocks.sort();
    Ok(blocks)
}

/// The commands of all pages. One goes on where a line ends within quotes or with a backslash.
///
/// # Errors
/// As [`blocks`].
pub fn commands() -> Result<Vec<(String, String)>> {
    let mut commands = Vec::new();
    for (page, block) in blocks()? {
        let mut command = String::new();
        for line in block.lines() {
            command.push_str(line);
            if command.ends_with('\\') || command.matches('\'').count() % 2 == 1 {
                command.push('\n');
            } else {
                commands.push((page.clone(), std::mem::take(&mut command)));
            }
        }
        ensure!(command.is_empty(), "{page}: {command} has no end");
    }
    Ok(commands)
}

/// A shell in which kubectl prints a text, if it is called with these words, and fails otherwise.
pub struct Shell(TempDir);

impl Shell {
    /// # Errors
    /// When the files cannot be written.
    pub fn new(words: &str, printed: &str) -> Result<Self> {
        let folder = TempDir::new()?;
        std::fs::write(folder.path().join("printed"), printed)?;
        let kubectl = folder.path().join("kubectl");
        let script = format!("#!/bin/sh\n[ \"$*\" = '{words}' ] && exec cat \"$PRINTED\"\n");
        std::fs::write(&kubectl, script)?;
        std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755))?;
        Ok(Self(folder))
    }

    /// Runs a command; returns what it prints.
    ///
    /// # Errors
    /// When it fails, as `grep` does that finds nothing; says what it wrote to stderr.
    pub fn run(&self, command: &str) -> Result<String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-c", command])
            .env("PATH", format!("{}:{path}", self.0.path().display()))
            .env("PRINTED", self.0.path().join("printed"))
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{command}: {}: {said}",
            output.status
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Searches of an agent's log, each with its page, that find nothing in it. A pattern of several
/// alternatives is as many searches: each is to find something.
///
/// # Errors
/// When there are none at all.
pub fn searches_in_vain(agent: &str, log: &str) -> Result<Vec<String>> {
    let logs = format!("-n garden logs deployment/dependency-watchdog-{agent} --all-pods");
    let shell = Shell::new(&logs, log)?;
    let (mut searches, mut vain) = (0, Vec::new());
    for (page, command) in commands()? {
        let Some((_, search)) = command.split_once(&format!("{logs} | grep ")) else {
            continue;
        };
        let (flag, pattern) = match search.strip_prefix("-i ") {
            Some(pattern) => ("-i ", pattern),
            None => ("", search),
        };
        let pattern = match pattern.strip_prefix('\'') {
            Some(quoted) => quoted.split('\'').next(),
            None => pattern.split(' ').next(),
        };
        for alternative in pattern.unwrap_or_default().split("\\|") {
            searches += 1;
            let search = format!("kubectl {logs} | grep {flag}'{alternative}'");
            if shell.run(&search).is_err() {
                vain.push(format!("{page}: {alternative}"));
            }
        }
    }
    ensure!(searches > 0, "no page searches the log of the {agent}");
    Ok(vain)
}
