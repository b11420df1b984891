//! This program once more, as a process beside the watchdog, so that what it costs is not mistaken for the watchdog's cost. It takes
//! orders, a line of JSON each, on its standard input, and answers each with a line. It ends when there are no more.

use std::process::Stdio;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use testbed::usage::Usage;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

/// Who takes orders. Dropping it ends it.
pub struct Beside {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Beside {
    /// Starts this program with these arguments.
    pub fn start(args: &[String]) -> Result<Self> {
        let mut process = tokio::process::Command::new(std::env::current_exe()?)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {args:?}"))?;
        let input = process.stdin.take().context("no way in")?;
        let output = BufReader::new(process.stdout.take().context("no way out")?).lines();
        Ok(Self { process, input, output })
    }

    /// Gives an order and returns the answer.
    pub async fn ask<A: DeserializeOwned>(&mut self, order: &impl Serialize) -> Result<A> {
        let line = serde_json::to_string(order)? + "\n";
        self.input.write_all(line.as_bytes()).await.context("it has ended")?;
        Ok(serde_json::from_str(&self.output.next_line().await?.context("it has ended")?)?)
    }

    /// What it has used so far.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.process.id().and_then(|id| i32::try_from(id).ok()).context("it has ended")?)
    }
}

/// Takes orders until there are no more: the other side of [`Beside::ask`].
pub async fn obey<O: DeserializeOwned, A: Serialize>(mut answer: impl FnMut(O) -> Result<A>) -> Result<()> {
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let mut output = tokio::io::stdout();
    while let Some(line) = orders.next_line().await? {
        let answer = serde_json::to_string(&answer(serde_json::from_str(&line)?)?)? + "\n";
        output.write_all(answer.as_bytes()).await?;
        output.flush().await?;
    }
    Ok(())
}
