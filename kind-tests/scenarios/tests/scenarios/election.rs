//! Replicas elect one that works: ours among themselves, and with one that leaves its election to
//! client-go.

mod go;
mod register;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use testbed::agent::RunningAgent;
use testbed::gardener::GARDEN;
use testbed::log::lines;
use testbed::objects::items;
use testbed::{Prober, SeedCluster, ShootCluster, ShootPlan, eventually, scenario};

use self::go::GoReplica;
use self::register::Register;
use crate::metrics::are_as_documented;
use crate::{DOWN, QUICK, comes_back, end_alone, with_args, written};

const LEASE: &str = "dwd-prober-leader-election";
/// The times of [`QUICK`].
const DURATION: TimeDelta = TimeDelta::seconds(6);
const DEADLINE: TimeDelta = TimeDelta::seconds(4);
/// Longer than anything is waited for here: what happens has not waited for any of them.
const SLOW: [&str; 3] = [
    "--leader-elect-lease-duration=1200s",
    "--leader-elect-renew-deadline=900s",
    "--leader-elect-retry-period=400s",
];
async fn prober(seed: &SeedCluster, args: &[&str]) -> Result<Prober> {
    Prober::start(seed, with_args(args)).await
}

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
    let leads = lines.iter().find(|line| line["msg"] == "leading")?;
    leads["identity"].as_str().map(Into::into)
}

/// Waits until a prober that has lost leadership ends, which it must do with 1.
pub async fn ends_with_1(prober: &mut Prober) -> Result<()> {
    let status = eventually("the prober ends", async || {
        prober.ended()?.context("it runs")
    })
    .await?;
    ensure!(status.code() == Some(1), "{status}\n{}", prober.tail(5));
    Ok(())
}

/// Nothing was asked of the Lease but what Gardener's role grants, and nothing was forbidden.
fn requests_within_rights(seed: &SeedCluster) -> Result<()> {
    let asked = seed.asked();
    ensure!(!asked.is_empty(), "the audit log is empty");
    for asked in asked {
        let good = match asked.verb.as_str() {
            "create" => true,
            "get" | "watch" | "update" => asked.name == LEASE,
            _ => false,
        };
        let of_lease = asked.resource == "leases";
        ensure!(!of_lease || good && asked.namespace == GARDEN, "{asked:?}");
        ensure!(!matches!(asked.code, 401 | 403), "{asked:?}");
    }
    Ok(())
}

/// What the only line about an outage in this log says.
fn record(log: &Path) -> Result<Value> {
    let [line] = &lines(log, "dependency-watchdog.outage/v1")[..] else {
        bail!("not one line")
    };
    let record = line["record"].as_str().context("no record")?;
    Ok(serde_json::from_str(record)?)
}

/// How many writes as a leader a record has, in one direction.
fn led(record: &Value, down: bool) -> usize {
    let writes = items(&record["writes"]);
    let led = writes.filter(|write| write["asLeader"] == true && (write["to"] == 0) == down);
    led.count()
}

#[test]
fn leader_hands_over_after_its_work() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let register = Register::of(&seed);
        let shoot = ShootCluster::create(bed, &seed, "handed-over", ShootPlan::default()).await?;
        let first = prober(&seed, &SLOW).await?;
        let one = leading(&first).await?;
        let second = prober(&seed, &[&SLOW[..], &["--metrics-per-shoot"]].concat()).await?;
        shoot.after_probes(2).await?;
        // It has begun to hold down, and not ended.
        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        written(&shoot, begin).await?;
        let log = first.log_file().to_owned();
        let status = first.terminate().await?;
        ensure!(status.code() == Some(0), "{status}");
        let (entry, released) = register.next(&[&one]).await?;
        ensure!(released.holder.is_empty(), "not released: {released:?}");
        ensure!(leading(&second).await? == entry.holder, "{entry:?}");
        shoot.held_down(&DOWN).await?;
        // Nobody writes between the two but the second in the first's place, if that is its turn.
        let asked = shoot.asked_of_seed().into_iter();
        let patches = asked.filter(|it| it.verb == "patch" && it.resource == "deployments");
        let times = patches.filter_map(|asked| asked.at.parse::<DateTime<Utc>>().ok());
        let between = times.filter(|&at| released.renewed < at && at < entry.acquired);
        let (between, in_its_place) = (between.count(), second.log("in its place").len());
        ensure!(
            between <= in_its_place,
            "{between} writes between {released:?} and {entry:?}, {in_its_place} in the first's place"
        );

        let events = seed.api().list("/api/v1/namespaces/garden/events").await?;
        for what in ["became leader", "stopped leading"] {
            let is_it = |event: &Value| {
                event["message"] == format!("{one} {what}")
                    && event["involvedObject"]["name"] == LEASE
                    && event["reason"] == "LeaderElection"
            };
            ensure!(events.iter().any(is_it), "{what}: {events:#?}");
        }
        comes_back(&shoot).await?;
        are_as_documented(second.log_file(), "Prober").await?;
        eventually("each has told the outage", async || {
            let (cut_short, whole) = (record(&log)?, record(second.log_file())?);
            ensure!(
                cut_short["end"] == "still_held_down" && led(&cut_short, true) > 0,
                "{cut_short}"
            );
            ensure!(
                whole["end"] == "restored" && led(&whole, false) == 3,
                "{whole}"
            );
            Ok(())
        })
        .await?;
        ensure!(second.terminate().await?.success());
        requests_within_rights(&seed)?;
        end_alone(shoot, ()).await
    })
}

#[test]
fn go_and_ours_never_lead_both() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let register = Register::of(&seed);

        // Go leads, ours waits for longer than a Lease lasts without renewals.
        let go = GoReplica::start(bed, &seed, "go-1").await?;
        go.leading().await?;
        let ours = prober(&seed, &QUICK).await?;
        register.renewals(8).await?;
        ensure!(identity(&ours).is_none(), "both lead");
        // Go gives it up.
        let stopped = go.terminate().await?;
        let (entry, before) = register.next(&["go-1"]).await?;
        let one = leading(&ours).await?;
        ensure!(
            entry.holder == one && entry.acquired >= stopped,
            "{entry:?}, Go stopped at {stopped}"
        );
        ensure!(before.holder.is_empty(), "{before:?} {entry:?}");

        // Ours leads, Go waits.
        let go = GoReplica::start(bed, &seed, "go-2").await?;
        register.renewals(8).await?;
        ensure!(go.said("leading").is_none(), "both lead");
        // Ours gives it up.
        ensure!(ours.terminate().await?.success());
        let began = go.leading().await?;
        let (_, before) = register.next(&["go-1", &one]).await?;
        ensure!(
            before.holder.is_empty() && began >= before.renewed,
            "{before:?}, Go led at {began}"
        );

        // Go is killed.
        let ours = prober(&seed, &QUICK).await?;
        register.renewals(4).await?;
        let killed = go.kill().await?;
        let (entry, before) = register.next(&["go-1", &one, "go-2"]).await?;
        let two = leading(&ours).await?;
        let waited = entry.acquired - before.renewed;
        ensure!(
            entry.holder == two && entry.acquired >= killed,
            "{entry:?}, Go was killed at {killed}"
        );
        ensure!(waited >= DURATION, "{waited}");

        // Ours is killed.
        let go = GoReplica::start(bed, &seed, "go-3").await?;
        register.renewals(4).await?;
        ensure!(go.said("leading").is_none(), "both lead");
        ours.kill().await?;
        let began = go.leading().await?;
        let (_, before) = register.next(&["go-1", &one, "go-2", &two]).await?;
        let last = before.renewed;
        // Beyond its deadline ours would not have written even if it lived.
        ensure!(began - last >= DEADLINE, "{}", began - last);
        go.terminate().await?;
        requests_within_rights(&seed)?;
        Ok(())
    })
}
