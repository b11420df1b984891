//! A prober's own clock that is off or steps, and a process that stands still in the middle of its
//! work: the real binary, against a seed and a shoot in memory.

mod world;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_server::Record;
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::try_join_all;
use testbed::agent::{AgentStart, RunningAgent};
use testbed::{PATIENCE, eventually_within, tolerating_stalls};
use tokio::time::Instant;

use self::world::{KCM, ProcessWorld, requests, scales};

/// A wall clock of one process.
struct WallClock(PathBuf);

impl WallClock {
    /// Starts a prober by a clock that is so many seconds ahead.
    fn start(world: &ProcessWorld, seconds: i64) -> Result<(Self, RunningAgent)> {
        let clock = Self(world.folder.join("clock"));
        clock.set(seconds)?;
        // The library that sets the clock of one process, made by the compiler that Rust itself
        // links with.
        let (library, source) = (
            clock.0.with_extension("so"),
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clocks/clock.c"),
        );
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .output()?;
        ensure!(
            compiled.status.success(),
            "cc: {}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        let pairs = [("LD_PRELOAD", &library), ("WALL_CLOCK_OFFSET", &clock.0)];
        let environment = pairs
            .map(|(name, path)| (name.to_owned(), path.display().to_string()))
            .into();
        let agent = AgentStart {
            environment,
            ..world.prober()?
        }
        .run()?;
        Ok((clock, agent))
    }

    fn set(&self, seconds: i64) -> Result<()> {
        // Replaced as a whole: half a number must not be read.
        let next = self.0.with_extension("next");
        std::fs::write(&next, seconds.to_string())?;
        Ok(std::fs::rename(next, &self.0)?)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_clock_that_is_off_or_steps_makes_no_outage() -> Result<()> {
    tolerating_stalls(async || {
        let world = ProcessWorld::new().await?;
        let (clock, prober) = WallClock::start(&world, -60)?;
        let untouched = || world.was_changed(|_| 0);
        world.looks(8).await?;
        untouched()?;
        // It does live in that time, by its own log.
        let logged = prober.log("\"ts\"");
        let time = logged.last().and_then(|line| line["ts"].as_str());
        let off = time.context("no log")?.parse::<DateTime<Utc>>()? - Utc::now();
        let is_off = (off + TimeDelta::seconds(60)).abs() < TimeDelta::seconds(20);
        ensure!(is_off, "its clock is {off} off");
        for ahead in [60, -60, 3600, 0] {
            clock.set(ahead)?;
            world.looks(4).await?;
            untouched()?;
        }
        let steps = async || {
            for ahead in [60, -60] {
                clock.set(ahead)?;
                world.looks(4).await?;
            }
            anyhow::Ok(())
        };
        world.nodes.cut_all();
        world.held_down().await?;
        steps().await?;
        world.held_down().await?;
        world.nodes.heal_all();
        world.free().await?;
        steps().await?;
        world.free().await?;
        ensure!(prober.terminate().await?.success(), "it did not end well");
        world.was_changed(|_| 2)
    })
    .await
}

/// How long a process is suspended: longer than a standstill must be to count. SUSPENDED_S in the
/// long form.
fn suspension() -> Duration {
    let given = std::env::var("SUSPENDED_S")
        .ok()
        .and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(given.unwrap_or(8))
}

/// An outage in which the process is suspended before its last scale-down; whether the outage goes
/// on after that, or not (fault 26). Without an election nothing but the process itself knows that
/// it stood still.
async fn suspended(goes_on: bool) -> Result<()> {
    let mut world = ProcessWorld::new().await?;
    // It goes down last, and only after a delay, in which the process is suspended.
    world.config.dependents[0]["scaleDown"]["initialDelay"] = "4s".into();
    let prober = world.prober()?.run()?;
    world.looks(3).await?;
    world.nodes.cut_all();
    let is_write = |record: &Record| scales(record) && record.status == Some(200);
    requests(&world.seed, 2, "the others go down", is_write).await?;
    prober.pause(true)?;
    let in_time = world.was_changed(|name| usize::from(name != KCM));
    in_time.context("it was too late to suspend it")?;
    if !goes_on {
        world.nodes.heal_all();
    }
    let since = Instant::now();
    eventually_within("a long suspension", suspension() + PATIENCE, async || {
        ensure!(since.elapsed() > suspension(), "{:?}", since.elapsed());
        Ok(())
    })
    .await?;
    prober.pause(false)?;
    if goes_on {
        world.held_down().await?;
        world.nodes.heal_all();
    }
    world.free().await?;
    world.looks(3).await?;
    ensure!(prober.terminate().await?.success(), "it did not end well");
    let of_kcm = |record: &Record| scales(record) && record.name == KCM;
    let asked = world.seed.requests().count(of_kcm);
    ensure!((asked > 0) == goes_on, "{KCM} was written {asked} times");
    world.was_changed(|name| if name == KCM && !goes_on { 0 } else { 2 })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_scale_down_goes_on_only_with_its_outage() -> Result<()> {
    let run = |goes_on| tolerating_stalls(async move || suspended(goes_on).await);
    try_join_all([true, false].map(run)).await.map(drop)
}
