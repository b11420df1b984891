//! Programs that are run to their end.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

/// What a shell script prints, on standard output.
///
/// # Errors
/// When it fails: with what it said.
pub async fn shell(script: &str) -> Result<String> {
    Ok(said(Command::new("sh").args(["-ec", script])).await?.0)
}

/// What a program prints on standard output and on standard error.
///
/// # Errors
/// When it cannot be run, or fails: with what it said.
pub async fn said(command: &mut Command) -> Result<(String, String)> {
    let shown = format!("{:?}", command.as_std());
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = output.await.with_context(|| shown.clone())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error, status) = (text(&output.stdout), text(&output.stderr), output.status);
    ensure!(status.success(), "{shown}: {status}: {out}{error}");
    Ok((out, error))
}
