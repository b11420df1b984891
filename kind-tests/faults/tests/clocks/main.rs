//! A prober's own clock that is off or steps, and a process that stands still in the middle of its
//! work: stories of the real binary, judged by the oracle of the soak.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use faults::script::Script;
use faults::shoot::KCM;
use futures::future::try_join_all;
use testbed::agent::binary;
use testbed::log::lines;
use testbed::tolerating_stalls;
use tokio::time::sleep;

/// How often kube-controller-manager was to be scaled.
fn writes(script: &Script) -> usize {
    let written = script.written().into_iter();
    written.filter(|name| name == KCM).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_clock_that_is_off_or_steps_makes_no_outage() -> Result<()> {
    tolerating_stalls(async || {
        let mut script = Script::new(1, Some(&binary()?)).await?;
        let file = script.life.log.with_file_name("clock");
        let set = |seconds: i64| {
            // Replaced as a whole: half a number must not be read.
            let next = file.with_extension("next");
            std::fs::write(&next, seconds.to_string())?;
            std::fs::rename(next, &file)
        };
        // The library that sets the clock of one process, made by the compiler that Rust itself
        // links with.
        let library = file.with_extension("so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clocks/clock.c");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]);
        let compiled = cc.args([&library, &source]).output()?;
        ensure!(compiled.status.success(), "{compiled:?}");
        let pairs = [("LD_PRELOAD", &library), ("WALL_CLOCK_OFFSET", &file)];
        let environment = pairs.map(|(name, path)| (name.to_owned(), path.display().to_string()));
        script.environment = environment.into();
        set(-60)?;
        let begins = "config probeInterval: 2s => probeInterval: 1s; prober; probes 8";
        script.tell(begins).await?;
        // It does live in that time, by its own log.
        let logged = lines(&script.life.agents.0[0].log(), "\"timestamp\"");
        let time = logged.last().and_then(|line| line["timestamp"].as_str());
        let off = time.context("no log")?.parse::<DateTime<Utc>>()? - Utc::now();
        let is_off = (off + TimeDelta::seconds(60)).abs() < TimeDelta::seconds(20);
        ensure!(is_off, "its clock is {off} off");
        for (ahead, story) in [
            (60, "probes 4"),
            (-60, "probes 4"),
            (3600, "probes 4"),
            (0, "probes 4; written; cut; all held"),
            (60, "probes 4"),
            (-60, "probes 4; all held; heal; all up"),
            (60, "probes 4"),
            (-60, "probes 4; all up"),
        ] {
            set(ahead)?;
            script.tell(story).await?;
        }
        ensure!(writes(&script) == 2, "{:?}", script.written());
        script.end().await
    })
    .await
}

/// How long a process is suspended: longer than a standstill must be to count. SUSPENDED_S in the
/// long form.
fn suspension() -> Duration {
    let given = std::env::var("SUSPENDED_S").ok();
    let given = given.and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(given.unwrap_or(8))
}

/// An outage in which the process is suspended before its last scale-down; whether the outage goes
/// on after that, or not (fault 26). The lead outlasts every suspension: nothing but the process
/// itself knows that it stood still.
async fn suspended(goes_on: bool) -> Result<()> {
    let mut script = Script::new(1, Some(&binary()?)).await?;
    let flags = ["lease-duration=1200s", "renew-deadline=900s"];
    let flags = flags.map(|flag| format!("--leader-elect-{flag}"));
    script.flags.extend(flags);
    script
        .tell("config probeInterval: 2s => probeInterval: 1s; config scaleDown: {level: 1} => scaleDown: {level: 1, initialDelay: 4s}; prober; probes 3; cut; writes 3; suspend prober")
        .await?;
    ensure!(writes(&script) == 0, "it was too late to suspend it");
    script.tell(if goes_on { "0 s" } else { "heal" }).await?;
    sleep(suspension()).await;
    script.tell("resume prober").await?;
    script
        .tell(if goes_on { "all held; heal" } else { "0 s" })
        .await?;
    script.tell("all up; probes 3").await?;
    ensure!((writes(&script) > 0) == goes_on, "{:?}", script.written());
    script.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_scale_down_goes_on_only_with_its_outage() -> Result<()> {
    let run = |goes_on| tolerating_stalls(async move || suspended(goes_on).await);
    try_join_all([true, false].map(run)).await.map(drop)
}
