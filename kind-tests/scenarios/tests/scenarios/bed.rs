//! The testbed itself: what the other scenarios take for granted.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testbed::{PATIENCE, scenario, unique};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::{Instant, timeout};

#[test]
fn waiting_ends_although_a_look_does_not() -> Result<()> {
    scenario(async |_| {
        let mut looks = 0;
        let waiting =
            testbed::eventually_within("what never is", Duration::from_millis(1), async || {
                looks += 1;
                ensure!(looks > 1, "not yet");
                std::future::pending::<Result<()>>().await
            });
        let error = timeout(PATIENCE, waiting)
            .await?
            .err()
            .context("it never was")?
            .to_string();
        ensure!(
            error.contains("what never is") && error.contains("not yet"),
            "{error}"
        );
        Ok(())
    })
}

#[test]
fn a_scenario_that_fails_is_run_again_where_the_machine_stood_still_and_not_otherwise() -> Result<()>
{
    scenario(async |_| {
        for stop in [true, false] {
            let mut child = this_program("bed::fails_the_first_time")
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?;
            let mut output = BufReader::new(child.stdout.take().context("no output")?).lines();
            while output
                .next_line()
                .await?
                .context("it has ended too early")?
                != "attempt"
            {}
            let (process, since) = (
                Pid::from_raw(child.id().context("it has ended")?.try_into()?),
                Instant::now(),
            );
            if stop {
                kill(process, Signal::SIGSTOP)?;
                testbed::eventually("a long stop", async || {
                    ensure!(since.elapsed() > Duration::from_secs(3));
                    Ok(())
                })
                .await?;
                kill(process, Signal::SIGCONT)?;
            }
            // It goes on now.
            drop(child.stdin.take());
            let ended = timeout(PATIENCE, child.wait_with_output()).await??;
            let said = String::from_utf8_lossy(&ended.stderr);
            let again = said.contains("stood still") && said.contains("as it was to");
            // Here too it may have stood still unasked.
            ensure!(again || !stop, "{said}");
            ensure!(ended.status.success() == again, "{}: {said}", ended.status);
        }
        Ok(())
    })
}

#[test]
#[ignore = "a part of the test above"]
fn fails_the_first_time() -> Result<()> {
    scenario(async |_| {
        let name = unique("attempt");
        println!("{name}");
        std::io::stdin().read_line(&mut String::new())?;
        ensure!(name != "attempt", "it fails, as it was to");
        Ok(())
    })
}

/// A process that runs one test of this program.
fn this_program(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command
        .args(["--exact", "--ignored", "--nocapture", test])
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    command
}

#[test]
fn what_a_test_process_has_started_ends_with_it_however_that_ends() -> Result<()> {
    scenario(async |_| {
        // This test's own program, which runs the test below, which starts a sleeper and a folder
        // and waits to be killed.
        let mut child = this_program("bed::started_by_the_test_above")
            .stderr(Stdio::null())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let (group, folder) = loop {
            let line = lines.next_line().await?.context("it has ended too early")?;
            if let Some((group, folder)) = line
                .split_once("started ")
                .and_then(|(_, rest)| rest.split_once(' '))
            {
                break (group.parse::<i32>()?, std::path::PathBuf::from(folder));
            }
        };
        let process = std::path::PathBuf::from(format!("/proc/{group}/cmdline"));
        let runs = || std::fs::read(&process).is_ok_and(|command| command.starts_with(b"sleep"));
        testbed::eventually("it runs", async || {
            ensure!(
                runs() && folder.is_dir(),
                "{:?}, {}",
                std::fs::read(&process),
                folder.display()
            );
            Ok(())
        })
        .await?;
        child.kill().await?;
        testbed::eventually("all of it has ended", async || {
            ensure!(
                !runs() && !folder.exists(),
                "process {}, folder {}",
                runs(),
                folder.exists()
            );
            Ok(())
        })
        .await
    })
}

#[test]
#[ignore = "a part of the test above"]
fn started_by_the_test_above() -> Result<()> {
    scenario(async |_| {
        let folder = testbed::reaper::folder("leash")?;
        let mut process = testbed::process::Process::start(
            "sleeper",
            std::path::Path::new("sleep"),
            &["60".into()],
            &folder.join("log"),
        )?;
        println!("started {} {}", process.id(), folder.display());
        process.end(Duration::from_secs(60)).await?;
        Ok(())
    })
}
