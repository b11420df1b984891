//! Programs that are run to their end.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

/// What a program prints, on standard output; none of its words has a space.
///
/// # Errors
/// When it cannot be run, or fails: with what it said.
pub async fn run(words: &str) -> Result<String> {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().context("no program")?);
    Ok(said(command.args(words)).await?.0)
}

/// What it prints on standard output and on standard error.
///
/// # Errors
/// When it cannot be run, or fails: with what it said.
pub async fn said(command: &mut Command) -> Result<(String, String)> {
    let shown = format!("{:?}", command.as_std());
    let output = command
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot run {shown}"))?;
    let [out, error] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    ensure!(
        output.status.success(),
        "{shown}: {}: {out}{error}",
        output.status
    );
    Ok((out, error))
}
