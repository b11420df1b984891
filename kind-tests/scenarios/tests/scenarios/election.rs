//! Replicas elect one that works: ours among themselves, and with one that leaves its election to
//! client-go.

mod go;
mod register;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use nix::sys::signal::Signal;
use serde_json::Value;
use testbed::agent::RunningAgent;
use testbed::audit::Asked;
use testbed::log::lines;
use testbed::{PATIENCE, ShootCluster, ShootPlan, eventually, scenario, start_prober};

use self::go::GoReplica;
use self::register::Register;
use crate::metrics::are_as_documented;
use crate::{QUICK, USUAL, comes_back, with_args, written};

const LEASE: &str = "dwd-prober-leader-election";
/// The times of [`QUICK`].
const DURATION: TimeDelta = TimeDelta::seconds(6);
const DEADLINE: TimeDelta = TimeDelta::seconds(4);
/// Longer than anything is waited for here: what happens has not waited for any of them.
const SLOW: [&str; 2] = [
    "--leader-elect-lease-duration=1200s",
    "--leader-elect-renew-deadline=900s",
];

/// Waits until an agent says that it leads; its identity.
pub async fn leading(agent: &RunningAgent) -> Result<String> {
    eventually("the agent leads", async || {
        identity(agent).with_context(|| format!("it does not say so:\n{}", agent.tail(5)))
    })
    .await
}

/// By which name an agent leads; none while it does not.
fn identity(agent: &RunningAgent) -> Option<String> {
    let lines = agent.log("\"leading\"");
    let leads = lines.iter().find(|line| line["message"] == "leading")?;
    leads["identity"].as_str().map(Into::into)
}

/// How the only outage in this log ended.
fn outage_ended(log: &Path) -> Result<String> {
    let [line] = &lines(log, "outage ended")[..] else {
        bail!("not one line")
    };
    let record: Value = serde_json::from_str(line["record"].as_str().context("no record")?)?;
    Ok(record["end"].as_str().context("no end")?.into())
}

#[test]
fn leader_hands_over_after_its_work() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let register = Register::of(&seed);
        let shoot = ShootCluster::create(bed, &seed, "handed-over", ShootPlan::default()).await?;
        let first = start_prober(&seed, with_args(&SLOW)).await?;
        let one = leading(&first).await?;
        let second = start_prober(&seed, with_args(&SLOW)).await?;
        shoot.after_probes(2).await?;
        // It has begun to hold down, and not ended.
        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        written(&shoot, begin).await?;
        let log = first.log_file().to_owned();
        ensure!(first.terminate().await?.success());
        let (entry, released) = register.led_by(&leading(&second).await?).await?;
        ensure!(released.holder.is_empty(), "not released: {released:?}");
        shoot.held_down(&USUAL).await?;
        // Nobody writes between the two but the second in the first's place, if that is its turn.
        let asked = shoot.asked_of_seed().into_iter();
        let patches = asked.filter(Asked::patches_deployment);
        let times = patches.filter_map(|asked| asked.at.parse::<DateTime<Utc>>().ok());
        let between = times.filter(|&at| released.renewed < at && at < entry.acquired);
        let (between, in_its_place) = (between.count(), second.log("in its place").len());
        ensure!(
            between <= in_its_place,
            "{between} writes between {released:?} and {entry:?}, {in_its_place} in the first's place"
        );

        let events = seed.api().get("/api/v1/namespaces/garden/events").await?;
        let said = format!("{one} became leader");
        ensure!(events.to_string().contains(&said), "{events}");
        comes_back(&shoot).await?;
        are_as_documented(second.log_file(), "Prober").await?;
        eventually("each has told the outage", async || {
            let (cut_short, whole) = (outage_ended(&log)?, outage_ended(second.log_file())?);
            ensure!(cut_short == "still_held_down", "{cut_short}");
            ensure!(whole == "restored", "{whole}");
            Ok(())
        })
        .await?;
        ensure!(second.terminate().await?.success());
        shoot.end().await
    })
}

#[test]
fn go_and_ours_never_lead_both() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let register = Register::of(&seed);
        let mut go = GoReplica::start(bed, &seed, "go-1").await?;
        go.leading().await?;
        for (signal, next) in [(Signal::SIGTERM, "go-2"), (Signal::SIGKILL, "go-3")] {
            let gives_up = signal == Signal::SIGTERM;
            // Go leads, ours waits for longer than a Lease lasts without renewals.
            let mut ours = start_prober(&seed, with_args(&QUICK)).await?;
            register.renewals(8).await?;
            ensure!(identity(&ours).is_none(), "both lead");
            // Go gives it up, or is killed.
            let ended = go.end(signal).await?;
            let (entry, before) = register.led_by(&leading(&ours).await?).await?;
            ensure!(entry.acquired >= ended, "{entry:?}, Go ended at {ended}");
            let waited = entry.acquired - before.renewed;
            ensure!(before.holder.is_empty() == gives_up, "{before:?}");
            ensure!(gives_up || waited >= DURATION, "{waited}");

            // Ours leads, Go waits.
            go = GoReplica::start(bed, &seed, next).await?;
            register.renewals(8).await?;
            ensure!(go.said("leading").is_none(), "both lead");
            // Ours gives it up, or is killed.
            ours.signal(signal)?;
            ours.end(PATIENCE).await?;
            let began = go.leading().await?;
            let (_, before) = register.led_by(next).await?;
            ensure!(before.holder.is_empty() == gives_up, "{before:?}");
            // Beyond its deadline ours would not have written even if it lived.
            let least = if gives_up {
                TimeDelta::zero()
            } else {
                DEADLINE
            };
            let waited = began - before.renewed;
            ensure!(waited >= least, "{waited}");
        }
        Ok(())
    })
}
