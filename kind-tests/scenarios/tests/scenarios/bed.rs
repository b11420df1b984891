//! The test bed itself: what the other scenarios take for granted.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::relay::{Path, Relay};
use testbed::shoot::{KCM, PATIENCE};
use testbed::{ShootPlan, scenario};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::shoot;

#[test]
fn ready_replicas_follow_and_the_journal_has_every_step() -> Result<()> {
    scenario(async |bed| {
        // Without a Secret the prober leaves it alone.
        let shoot = shoot(bed, "followed", ShootPlan { secret: false, ..ShootPlan::default() }).await?;
        shoot.scale(KCM, 0).await?;
        shoot
            .eventually("no pod is left", PATIENCE, async || {
                let state = shoot.dependent(KCM).await?;
                ensure!(state.ready == 0, "{state}");
                Ok(())
            })
            .await?;
        let steps: Vec<_> = shoot
            .history()
            .into_iter()
            .filter(|entry| entry.name == KCM)
            .filter_map(|entry| entry.state.map(|state| (state.replicas, state.ready)))
            .collect();
        ensure!(steps == [(2, 0), (2, 2), (0, 2), (0, 0)], "{steps:?}");
        shoot.end().await
    })
}

#[test]
fn waiting_ends_although_a_look_does_not() -> Result<()> {
    scenario(async |_| {
        let mut looks = 0;
        let waiting = testbed::eventually("what never is", Duration::from_millis(1), async || {
            looks += 1;
            ensure!(looks > 1, "not yet");
            std::future::pending::<Result<()>>().await
        });
        let error = timeout(PATIENCE, waiting).await?.err().context("it never was")?.to_string();
        ensure!(error.contains("what never is") && error.contains("not yet"), "{error}");
        Ok(())
    })
}

/// Sends a byte and waits for the echo.
async fn echoed(stream: &mut TcpStream) -> Result<()> {
    stream.write_all(b"x").await?;
    stream.read_exact(&mut [0]).await?;
    Ok(())
}

/// A byte comes back, however busy the machine is.
async fn ping(stream: &mut TcpStream) -> Result<()> {
    timeout(Duration::from_secs(10), echoed(stream)).await?
}

/// No byte comes back: the connection is refused, closed or reset, or nothing is heard. An echo on loopback is there within
/// a millisecond.
async fn is_dead(stream: &mut TcpStream) -> bool {
    !matches!(timeout(Duration::from_millis(500), echoed(stream)).await, Ok(Ok(())))
}

#[test]
fn the_relay_passes_counts_holds_up_and_cuts() -> Result<()> {
    scenario(async |_| {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let target = listener.local_addr()?;
        let echo = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        let relay = Relay::start(target).await?;
        let mut stream = TcpStream::connect(relay.address()).await?;
        ping(&mut stream).await?;
        ping(&mut stream).await?;
        ensure!((relay.connections(), relay.turns(), relay.bytes()) == (1, 2, (2, 2)));

        for path in [Path::Stalled, Path::HalfOpen] {
            relay.set(path);
            ensure!(is_dead(&mut stream).await, "{path:?} lets a byte pass");
            let mut new = TcpStream::connect(relay.address()).await?;
            ensure!(is_dead(&mut new).await, "{path:?} lets a byte pass on a new connection");
            relay.set(Path::Open);
            stream = TcpStream::connect(relay.address()).await?;
            ping(&mut stream).await?;
        }
        relay.cut();
        ensure!(is_dead(&mut stream).await);
        stream = TcpStream::connect(relay.address()).await?;
        ping(&mut stream).await?;

        relay.set(Path::Refused);
        ensure!(is_dead(&mut stream).await);
        testbed::eventually("connections are refused", Duration::from_secs(5), async || {
            ensure!(TcpStream::connect(relay.address()).await.is_err(), "accepted");
            Ok(())
        })
        .await?;
        relay.set(Path::Open);
        stream = testbed::eventually("connections are accepted again", Duration::from_secs(5), async || {
            Ok(TcpStream::connect(relay.address()).await?)
        })
        .await?;
        ping(&mut stream).await?;

        relay.set(Path::Reset);
        ensure!(is_dead(&mut stream).await);
        // The reset may come as early as in the midst of connecting.
        if let Ok(mut new) = TcpStream::connect(relay.address()).await {
            ensure!(is_dead(&mut new).await);
        }
        echo.abort();
        Ok(())
    })
}

#[test]
fn what_a_test_process_has_started_ends_with_it_however_that_ends() -> Result<()> {
    scenario(async |_| {
        // This test's own program, which runs the test below, which starts a sleeper and a folder and waits to be killed.
        let mut child = tokio::process::Command::new(std::env::current_exe()?)
            .args(["--exact", "--ignored", "--nocapture", "bed::started_by_the_test_above"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut output = tokio::io::BufReader::new(child.stdout.take().context("no output")?);
        let mut lines = tokio::io::AsyncBufReadExt::lines(&mut output);
        let (group, folder) = loop {
            let line = lines.next_line().await?.context("it has ended too early")?;
            if let Some((group, folder)) = line.split_once("started ").and_then(|(_, rest)| rest.split_once(' ')) {
                break (group.parse::<i32>()?, std::path::PathBuf::from(folder));
            }
        };
        let process = std::path::PathBuf::from(format!("/proc/{group}/cmdline"));
        let runs = || std::fs::read(&process).is_ok_and(|command| command.starts_with(b"sleep"));
        testbed::eventually("it runs", Duration::from_secs(5), async || {
            ensure!(runs() && folder.is_dir(), "{:?}, {}", std::fs::read(&process), folder.display());
            Ok(())
        })
        .await?;
        child.kill().await?;
        testbed::eventually("all of it has ended", Duration::from_secs(10), async || {
            ensure!(!runs() && !folder.exists(), "process {}, folder {}", runs(), folder.exists());
            Ok(())
        })
        .await
    })
}

#[test]
#[ignore = "a part of the test above"]
fn started_by_the_test_above() -> Result<()> {
    scenario(async |_| {
        let folder = testbed::leash::folder("leash")?;
        let mut process =
            testbed::process::Process::start("sleeper", std::path::Path::new("sleep"), &["60".into()], &folder.join("log"))?;
        println!("started {} {}", process.id(), folder.display());
        process.end(Duration::from_secs(60)).await?;
        Ok(())
    })
}
