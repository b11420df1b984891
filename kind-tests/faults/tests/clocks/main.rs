//! A prober's own clock that is off or steps, and a process that stands still in the middle of its
//! work: stories of the real binary, judged by the oracle of the soak.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use faults::script::Script;
use futures::future::try_join_all;
use testbed::agent::binary;
use testbed::log::lines;
use testbed::tolerating_stalls;

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
        script
            .tell("asked patch deployments kube-controller-manager: 2")
            .await?;
        script.end().await
    })
    .await
}

/// How long a process is suspended: longer than a standstill must be to count. SUSPENDED_S in the
/// long form.
fn suspension() -> String {
    std::env::var("SUSPENDED_S").unwrap_or_else(|_| "8".to_owned())
}

/// An outage in which the process is suspended before its last scale-down, and what comes then. The
/// lead outlasts every suspension: nothing but the process itself knows that it stood still.
async fn suspended(then: String) -> Result<()> {
    let mut script = Script::new(1, Some(&binary()?)).await?;
    let flags = ["lease-duration=1200s", "renew-deadline=900s"];
    let flags = flags.map(|flag| format!("--leader-elect-{flag}"));
    script.flags.extend(flags);
    script
        .tell("config probeInterval: 2s => probeInterval: 1s; config scaleDown: {level: 1} => scaleDown: {level: 1, initialDelay: 4s}; prober; probes 3; cut; writes 3; suspend prober; asked patch deployments kube-controller-manager: 0")
        .await?;
    script.tell(&then).await?;
    script.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_scale_down_goes_on_only_with_its_outage() -> Result<()> {
    // Fault 26
    let time = suspension();
    let stories = [
        format!("{time} s; resume prober; all held; heal; all up; probes 3"),
        format!(
            "heal; {time} s; resume prober; all up; probes 3; asked patch deployments kube-controller-manager: 0"
        ),
    ];
    let run = |story: String| tolerating_stalls(async move || suspended(story.clone()).await);
    try_join_all(stories.map(run)).await.map(drop)
}
