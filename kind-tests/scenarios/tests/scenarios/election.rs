//! Replicas elect one that works: ours among themselves, and with one that leaves its election to
//! client-go.

mod go;
pub mod register;

use anyhow::{Context, Result, ensure};
use api_server::{Fault, MemoryApi, Options, When};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use testbed::agent::RunningAgent;
use testbed::gardener::GARDEN;
use testbed::page::metrics;
use testbed::proxy::{ProxyMode, TcpProxy};
use testbed::{Prober, SeedCluster, ShootCluster, ShootPlan, Testbed, eventually, scenario};

use self::go::GoReplica;
use self::register::Register;
use crate::instruments::served;
use crate::{
    DOWN, QUICK, UP, comes_back, end_alone, goes_down, prober_behind, shows, with_args, writes,
};

const LEASE: &str = "dwd-prober-leader-election";
/// The times of [`QUICK`].
const DURATION: TimeDelta = TimeDelta::seconds(6);
const DEADLINE: TimeDelta = TimeDelta::seconds(4);
const RETRY: TimeDelta = TimeDelta::seconds(1);
/// Longer than anything is waited for here: what happens has not waited for any of them.
const SLOW: [&str; 3] = [
    "--leader-elect-lease-duration=1200s",
    "--leader-elect-renew-deadline=900s",
    "--leader-elect-retry-period=400s",
];
/// The times of [`QUICK`] but for how long a Lease lasts: a busy machine may take some seconds to
/// end a process.
const TOLERANT: [&str; 3] = [
    "--leader-elect-lease-duration=10s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
];
const TOLERANT_DURATION: TimeDelta = TimeDelta::seconds(10);

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
pub fn identity(agent: &RunningAgent) -> Option<String> {
    let lines = agent.log("\"leading\"");
    lines
        .iter()
        .find(|line| line["msg"] == "leading")
        .and_then(|line| line["identity"].as_str())
        .map(Into::into)
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
fn requests_within_rights(bed: &Testbed, seed: &SeedCluster) -> Result<()> {
    let asked = seed.asked();
    let leases: Vec<_> = asked
        .iter()
        .filter(|asked| asked.resource == "leases")
        .collect();
    ensure!(
        bed.is_given() || !leases.is_empty(),
        "the audit log is empty"
    );
    for asked in leases {
        let good = match asked.verb.as_str() {
            "create" => true,
            "get" | "watch" | "update" => asked.name == LEASE,
            _ => false,
        };
        ensure!(good && asked.namespace == GARDEN, "{asked:?}");
    }
    let forbidden: Vec<_> = asked
        .iter()
        .filter(|asked| matches!(asked.code, 401 | 403))
        .collect();
    ensure!(forbidden.is_empty(), "{forbidden:#?}");
    Ok(())
}

/// When dependents were written, by the audit log.
fn written(seed: &SeedCluster) -> Vec<DateTime<Utc>> {
    let asked = seed.asked();
    let patches = asked
        .iter()
        .filter(|asked| asked.resource.starts_with("deployments") && asked.verb == "patch");
    patches.filter_map(|asked| asked.at.parse().ok()).collect()
}

#[test]
fn when_the_leader_is_held_up_or_killed_another_replica_leads_in_time_and_acts() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let register = Register::of(&seed);
        let shoot = ShootCluster::create(bed, &seed, "elected", ShootPlan::default()).await?;
        let mut first = prober(&seed, &QUICK).await?;
        let one = leading(&first).await?;
        let second = prober(&seed, &[&QUICK[..], &["--metrics-per-shoot"]].concat()).await?;
        shoot.after_probes(2).await?;
        ensure!(identity(&second).is_none(), "both lead");

        // The first is held up for too long, and leaves the work to the second once it notices.
        first.pause(true)?;
        let (entry, _) = register.next(&[&one]).await?;
        let two = leading(&second).await?;
        ensure!(two == entry.holder, "{entry:?}");
        goes_down(&shoot).await?;
        let begin = shoot.history().len();
        first.pause(false)?;
        ends_with_1(&mut first).await?;
        shoot.after_probes(3).await?;
        shoot.untouched_since(begin)?;
        ensure!(
            register.holder() == two,
            "{} took it again",
            register.holder()
        );

        // The second is killed, and the third does not wait for longer than the Lease lasts.
        let third = prober(&seed, &QUICK).await?;
        register.renewals(4).await?;
        ensure!(identity(&third).is_none(), "both lead");
        served("Prober", second.log_file(), third.log_file()).await?;
        shows(
            third.log_file(),
            "dwd_leases{state=\"candidate\"}",
            3.0..=3.0,
        )
        .await?;
        let names: Vec<_> = metrics(third.log_file()).await?.types.into_keys().collect();
        ensure!(
            !names.iter().any(|name| name.starts_with("dwd_shoot_")),
            "shoots have series of their own unasked: {names:?}"
        );
        second.kill().await?;
        shoot.nodes.heal_all();
        let (entry, before) = register.next(&[&one, &two]).await?;
        let waited = entry.acquired - before.context("nobody before")?.renewed;
        ensure!(waited >= DURATION, "{waited}");
        ensure!(leading(&third).await? == entry.holder, "{entry:?}");
        shoot.free_at(&UP).await?;

        ensure!(third.terminate().await?.success());
        eventually("a Lease that nobody holds", async || {
            ensure!(register.holder().is_empty(), "{} does", register.holder());
            Ok(())
        })
        .await?;
        requests_within_rights(bed, &seed)?;
        end_alone(shoot, ()).await
    })
}

#[test]
fn a_leader_that_is_asked_to_end_gives_the_lease_up_after_its_work_and_the_other_goes_on_at_once()
-> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let register = Register::of(&seed);
        let shoot = ShootCluster::create(bed, &seed, "handed-over", ShootPlan::default()).await?;
        let first = prober(&seed, &SLOW).await?;
        let one = leading(&first).await?;
        let second = prober(&seed, &SLOW).await?;
        shoot.after_probes(2).await?;
        // It has begun to hold down, and not ended.
        let begin = shoot.history().len();
        shoot.nodes.cut_all();
        writes(&shoot, begin, 1).await?;
        let status = first.terminate().await?;
        ensure!(status.code() == Some(0), "{status}");
        let (entry, released) = register.next(&[&one]).await?;
        let released = released.context("nobody before")?;
        ensure!(released.holder.is_empty(), "not released: {released:?}");
        ensure!(leading(&second).await? == entry.holder, "{entry:?}");
        shoot.held_down(&DOWN).await?;
        // Nobody writes between the two but the second in the first's place, if that is its turn.
        let between = written(&seed)
            .into_iter()
            .filter(|&write| released.renewed < write && write < entry.acquired);
        let (between, in_its_place) = (between.count(), second.log("in its place").len());
        ensure!(
            between <= in_its_place,
            "{between} writes between {released:?} and {entry:?}, {in_its_place} in the first's place"
        );

        let events = seed.api().get("/api/v1/namespaces/garden/events").await?;
        for what in ["became leader", "stopped leading"] {
            let (what, reason) = (format!("{one} {what}"), "LeaderElection");
            let is_it = |event: &Value| {
                event["message"] == what
                    && event["involvedObject"]["name"] == LEASE
                    && event["reason"] == reason
            };
            ensure!(
                events["items"].as_array().into_iter().flatten().any(is_it),
                "{what}: {events:#}"
            );
        }
        comes_back(&shoot).await?;
        ensure!(second.terminate().await?.success());
        requests_within_rights(bed, &seed)?;
        end_alone(shoot, ()).await
    })
}

#[test]
fn a_leader_that_cannot_renew_ends_with_1_before_the_other_replica_leads() -> Result<()> {
    scenario(async |bed| {
        let seed = bed.own_seed().await?;
        let register = Register::of(&seed);
        let trouble = MemoryApi::start(bed.authority().await?, Options::default()).await?;
        trouble.faults().add(When::any(), Fault::status(500));
        let mut known: Vec<String> = Vec::new();
        for trial in ["stalled", "half-open", "refused", "500"] {
            let proxy = TcpProxy::start(seed.plane().address()).await?;
            let mut first = prober_behind(&seed, &proxy, &TOLERANT).await?;
            known.push(leading(&first).await?);
            let second = prober(&seed, &TOLERANT).await?;
            register.renewals(4).await?;
            match trial {
                "stalled" => proxy.set(ProxyMode::Stalled),
                "half-open" => proxy.set(ProxyMode::HalfOpen),
                "refused" => proxy.set(ProxyMode::Refused),
                _ => proxy.redirect(trouble.address()),
            }
            ends_with_1(&mut first).await.context(trial)?;
            let ended = Utc::now();
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let (entry, before) = register.next(&names).await?;
            let before = before.context("nobody before")?;
            // The last renewal may have come through without an answer, which its sender never knew
            // of; where answers alone were lost, several. It was sent a retry period after the last
            // one known of, or somewhat later on a busy machine.
            let held = ended - before.renewed;
            ensure!(
                trial == "half-open" || held >= DEADLINE - RETRY * 2,
                "{trial}: gave up after {held}"
            );
            ensure!(held < TOLERANT_DURATION, "{trial}: led for {held}");
            ensure!(
                entry.acquired - before.renewed >= TOLERANT_DURATION,
                "{trial}: {before:?} {entry:?}"
            );
            known.push(leading(&second).await?);
            ensure!(second.terminate().await?.success(), "{trial}");
        }
        requests_within_rights(bed, &seed)?;
        Ok(())
    })
}

#[test]
fn a_replica_in_go_and_one_of_ours_never_lead_both_whichever_comes_first_and_however_it_ends()
-> Result<()> {
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
        let before = before.context("nobody before")?;
        ensure!(before.holder.is_empty(), "{before:?} {entry:?}");

        // Ours leads, Go waits.
        let go = GoReplica::start(bed, &seed, "go-2").await?;
        register.renewals(8).await?;
        ensure!(go.said("leading").is_none(), "both lead");
        // Ours gives it up.
        ensure!(ours.terminate().await?.success());
        let began = go.leading().await?;
        let (_, before) = register.next(&["go-1", &one]).await?;
        let before = before.context("nobody before")?;
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
        let waited = entry.acquired - before.context("nobody before")?.renewed;
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
        let last = before.context("nobody before")?.renewed;
        // Beyond its deadline ours would not have written even if it lived.
        ensure!(began - last >= DEADLINE, "{}", began - last);
        go.terminate().await?;
        requests_within_rights(bed, &seed)?;
        Ok(())
    })
}
