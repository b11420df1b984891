//! Programs that are run to their end.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

/// What a program prints, on standard output.
///
/// # Errors
/// When it cannot be run, or fails: with what it said.
pub async fn run(program: &str, args: &[&str]) -> Result<String> {
    Ok(said(Command::new(program).args(args)).await?.0)
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
