//! What a test process has started ends with it, also when it is killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::process::Process;
use testbed::{eventually, reaper, scenario};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

#[test]
fn all_ends_with_a_test_process() -> Result<()> {
    scenario(async |_| {
        let mut child = Command::new(std::env::current_exe()?)
            .args([
                "--exact",
                "--ignored",
                "--nocapture",
                "ends::waits_to_be_killed",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let (process, folder) = loop {
            let line = lines.next_line().await?.context("it has ended too early")?;
            let started = line
                .split_once("started ")
                .and_then(|(_, rest)| rest.split_once(' '));
            if let Some((process, folder)) = started {
                break (format!("/proc/{process}/cmdline"), PathBuf::from(folder));
            }
        };
        let is_there = |wanted: bool| {
            let runs = std::fs::read(&process).is_ok_and(|command| command.starts_with(b"sleep"));
            ensure!(
                runs == wanted && folder.is_dir() == wanted,
                "it runs: {runs}"
            );
            Ok(())
        };
        eventually("it has started", async || is_there(true)).await?;
        child.kill().await?;
        eventually("all of it has ended", async || is_there(false)).await
    })
}

#[test]
#[ignore = "a part of the test above"]
fn waits_to_be_killed() -> Result<()> {
    scenario(async |_| {
        let folder = reaper::folder("leash")?;
        let (sleep, log) = (Path::new("sleep"), folder.join("log"));
        let mut process = Process::start("sleeper", sleep, &["60".into()], &log)?;
        println!("started {} {}", process.id(), folder.display());
        process.end(Duration::from_secs(60)).await.map(drop)
    })
}
