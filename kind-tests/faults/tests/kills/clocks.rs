//! A prober's own clock that is off or steps, and a process that stands still in the middle of its
//! work.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::try_join_all;
use testbed::agent::{AgentStart, RunningAgent};
use testbed::{PATIENCE, eventually_within, tolerating_stalls};
use tokio::time::Instant;

use crate::replicas::{scales, terminate};
use crate::world::{DEPLOYMENTS, KCM, KillWorld, USERS, requests};

/// A wall clock of one process.
struct WallClock(PathBuf);

impl WallClock {
    /// Starts a prober by a clock that is so many seconds ahead.
    fn start(world: &KillWorld, seconds: i64) -> Result<(Self, RunningAgent)> {
        let clock = Self(world.folder.join("clock"));
        clock.set(seconds)?;
        // The library that sets the clock of one process, made by the compiler that Rust itself
        // links with.
        let (library, source) = (
            clock.0.with_extension("so"),
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kills/clock.c"),
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
            ..world.prober(USERS[0], false)?
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

/// An outage and its end, with something else happening in between, each seen and each change made
/// once.
async fn outage(world: &KillWorld, meanwhile: impl AsyncFn() -> Result<()>) -> Result<()> {
    world.nodes.cut_all();
    world.held_down().await?;
    meanwhile().await?;
    world.looks(2).await?;
    world.held_down().await?;
    world.nodes.heal_all();
    world.free().await?;
    meanwhile().await?;
    world.looks(2).await?;
    world.free().await
}

/// No dependent was written so far.
fn untouched(world: &KillWorld) -> Result<()> {
    world.ledger.lock().balance(|_| 0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_whose_clock_is_off_or_steps_sees_outages_and_no_others() -> Result<()> {
    // How far it is ahead at first, and whereto it steps while all is well, and in an outage and
    // after it.
    let clocks: [(i64, &[i64], &[i64]); 3] = [
        (-60, &[], &[]),
        (60, &[], &[]),
        (0, &[60, -60, 3600, 0], &[60, -60]),
    ];
    try_join_all(clocks.map(|(ahead, steps, meanwhile)| {
        tolerating_stalls(async move || {
            let world = KillWorld::new(&DEPLOYMENTS).await?;
            let (clock, prober) = WallClock::start(&world, ahead)?;
            world.looks(8).await?;
            untouched(&world)?;
            // It does live in that time, by its own log.
            let logged = prober.log("\"ts\"");
            let time = logged
                .last()
                .and_then(|line| line["ts"].as_str())
                .context("no log")?;
            let off = time.parse::<DateTime<Utc>>()? - Utc::now();
            ensure!(
                (off - TimeDelta::seconds(ahead)).abs() < TimeDelta::seconds(20),
                "its clock is {off} off"
            );
            for ahead in steps {
                clock.set(*ahead)?;
                world.looks(4).await?;
                untouched(&world)?;
            }
            outage(&world, async || {
                for ahead in meanwhile {
                    clock.set(*ahead)?;
                    world.looks(2).await?;
                }
                Ok(())
            })
            .await?;
            terminate(prober).await?;
            world.ledger.lock().balance(|kind| kind.changes)
        })
    }))
    .await
    .map(drop)
}

/// How long a process is suspended: longer than a standstill must be to count. SUSPENDED_S in the
/// long form.
fn suspension() -> Duration {
    let given = std::env::var("SUSPENDED_S")
        .ok()
        .and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(given.unwrap_or(8))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scale_down_that_was_suspended_goes_on_if_the_outage_does_and_not_if_the_nodes_are_well_again()
-> Result<()> {
    // Fault 26, without an election: nothing but the process itself knows that it stood still.
    try_join_all([true, false].map(|well_again| {
        tolerating_stalls(async move || {
            let mut world = KillWorld::new(&DEPLOYMENTS).await?;
            // It goes down last, and only after a delay, in which the process is suspended.
            world.config.dependents[0]["scaleDown"]["initialDelay"] = "4s".into();
            let prober = world.prober(USERS[0], false)?.run()?;
            world.looks(3).await?;
            world.nodes.cut_all();
            requests(&world.seed, 2, "the others go down", |record| {
                scales(record) && record.status == Some(200)
            })
            .await?;
            prober.pause(true)?;
            let others_went_down = world
                .ledger
                .lock()
                .balance(|kind| usize::from(kind.name != KCM));
            others_went_down.context("it was too late to suspend it")?;
            if well_again {
                world.nodes.heal_all();
            }
            let since = Instant::now();
            eventually_within("a long suspension", suspension() + PATIENCE, async || {
                ensure!(since.elapsed() > suspension(), "{:?}", since.elapsed());
                Ok(())
            })
            .await?;
            prober.pause(false)?;
            if !well_again {
                world.held_down().await?;
                world.nodes.heal_all();
            }
            world.free().await?;
            world.looks(3).await?;
            terminate(prober).await?;
            let asked = world
                .seed
                .requests()
                .count(|record| scales(record) && record.name == KCM);
            ensure!(
                (asked == 0) == well_again,
                "{KCM} was written {asked} times"
            );
            world.ledger.lock().balance(|kind| {
                if well_again && kind.name == KCM {
                    0
                } else {
                    kind.changes
                }
            })
        })
    }))
    .await
    .map(drop)
}
