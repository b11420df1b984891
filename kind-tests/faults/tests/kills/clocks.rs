//! Clocks that are off, step or drift: the prober's own, those of two replicas, those of the nodes. And a process that stands
//! still in the middle of its work.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::TimeDelta;
use futures::future::try_join_all;
use nix::sys::signal::Signal;
use testbed::agent::Start;
use testbed::api::Record;
use testbed::{eventually, leash};
use tokio::time::{Instant, interval};

use crate::replicas::{LEASES, Replica, scales};
use crate::scaling::{fenced, holder};
use crate::world::{BEAT, DEPLOYMENTS, KCM, PATIENCE, USERS, World, requests};

/// The library that sets the wall clock of one process, made by the compiler that Rust itself links with.
static SHIM: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let library = leash::folder("clock").map_err(|error| error.to_string())?.join("clock.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kills/clock.c");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source);
    let output = compile.output().map_err(|error| format!("cc: {error}"))?;
    if output.status.success() { Ok(library) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
});

/// A wall clock of one process.
struct WallClock(PathBuf);

impl WallClock {
    /// One that is so many seconds ahead.
    fn ahead(world: &World, user: &str, seconds: i64) -> Result<Self> {
        let clock = Self(world.folder.join(format!("clock-{user}")));
        clock.set(seconds)?;
        Ok(clock)
    }

    fn set(&self, seconds: i64) -> Result<()> {
        // Replaced as a whole: half a number must not be read.
        let next = self.0.with_extension("next");
        std::fs::write(&next, seconds.to_string())?;
        Ok(std::fs::rename(next, &self.0)?)
    }

    fn environment(&self) -> Result<Vec<(String, String)>> {
        let shim = SHIM.as_ref().map_err(|error| anyhow::anyhow!("no clock: {error}"))?;
        let pairs = [("LD_PRELOAD", shim), ("WALL_CLOCK_OFFSET", &self.0)];
        Ok(pairs.map(|(name, path)| (name.to_owned(), path.display().to_string())).into())
    }
}

fn start(world: &World, user: &'static str, election: bool) -> Result<Replica> {
    Replica::start(world.prober(user, election)?)
}

fn start_by(clock: &WallClock, world: &World, user: &'static str, election: bool) -> Result<Replica> {
    Replica::start(Start { environment: clock.environment()?, ..world.prober(user, election)? })
}

/// An outage and its end, with something else happening in between, each seen and each change made once.
async fn outage(world: &World, meanwhile: impl AsyncFn() -> Result<()>) -> Result<()> {
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
fn untouched(world: &World) -> Result<()> {
    world.ledger().balance(&world.kinds.iter().map(|kind| (kind.name, 0)).collect::<Vec<_>>())
}

/// Waits until one leads that is not this one.
async fn leads(world: &World, but: &str) -> Result<String> {
    eventually("somebody leads", PATIENCE, async || {
        let holder = holder(world);
        ensure!(!holder.is_empty() && holder != but, "{holder} does");
        Ok(holder)
    })
    .await
}

/// When the process itself says that it is, in its log.
fn told_time(world: &World, user: &str) -> Result<chrono::DateTime<chrono::Utc>> {
    let lines = testbed::log::lines(&world.folder.join(format!("{user}.log")), "\"ts\"");
    let last = lines.last().and_then(|line| line["ts"].as_str()).context("no log")?;
    Ok(last.parse()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_whose_clock_is_off_or_steps_sees_outages_and_no_others() -> Result<()> {
    // How far it is ahead at first, and whereto it steps while all is well, and in an outage and after it.
    let clocks: [(i64, &[i64], &[i64]); 3] = [(-60, &[], &[]), (60, &[], &[]), (0, &[60, -60, 3600, 0], &[60, -60])];
    try_join_all(clocks.map(async |(ahead, steps, meanwhile)| {
        let world = World::new(&DEPLOYMENTS).await?;
        let clock = WallClock::ahead(&world, USERS[0], ahead)?;
        let mut prober = start_by(&clock, &world, USERS[0], false)?;
        world.looks(8).await?;
        untouched(&world)?;
        // It does live in that time.
        let off = told_time(&world, USERS[0])? - chrono::Utc::now();
        ensure!((off - TimeDelta::seconds(ahead)).abs() < TimeDelta::seconds(20), "its clock is {off} off");
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
        prober.terminate().await?;
        world.ledger().balance(&world.intended())
    }))
    .await
    .map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_whose_clocks_differ_agree_who_leads() -> Result<()> {
    let world = World::new(&DEPLOYMENTS).await?;
    let first = WallClock::ahead(&world, USERS[0], 60)?;
    let mut leader = start_by(&first, &world, USERS[0], true)?;
    let leads = leads(&world, "").await?;
    let second = WallClock::ahead(&world, USERS[1], -60)?;
    let mut other = start_by(&second, &world, USERS[1], true)?;
    for steps in [[60, -60], [-60, 60], [0, 3600]] {
        first.set(steps[0])?;
        second.set(steps[1])?;
        // As long as a Lease lives, which begins again with every renewal.
        let renewal = |record: &Record| record.resource == LEASES && record.verb == "update" && record.user == USERS[0];
        let before = world.seed.requests().count(renewal);
        requests(&world.seed, before + 10, "the leader renews", renewal).await?;
        ensure!(holder(&world) == leads, "{} has taken the lead from {leads}", holder(&world));
    }
    outage(&world, async || Ok(())).await?;
    fenced(&world)?;
    let wrote = world.seed.requests().count(|record| scales(record) && record.user == USERS[1]);
    ensure!(wrote == 0, "the other one wrote");
    other.terminate().await?;
    leader.terminate().await?;
    world.ledger().balance(&world.intended())
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_whose_clocks_are_off_step_or_drift_are_judged_like_all_others() -> Result<()> {
    let world = World::new(&DEPLOYMENTS).await?;
    let mut prober = start(&world, USERS[0], false)?;
    world.looks(3).await?;
    for skews in [[-60, 60, 0], [60, -60, 30], [-60, -60, -60], [60, 60, 60], [0, 0, 0]] {
        for (node, seconds) in skews.into_iter().enumerate() {
            world.nodes.skew([node], TimeDelta::seconds(seconds));
        }
        world.looks(4).await?;
        untouched(&world)?;
    }
    // A tenth of a second in each second: two hundred times what a clock is set right by at most.
    let mut beats = interval(BEAT);
    for beat in 0..40 {
        beats.tick().await;
        for (node, sign) in [-1, 1, -1].into_iter().enumerate() {
            world.nodes.skew([node], TimeDelta::milliseconds(sign * 30 * beat));
        }
    }
    untouched(&world)?;
    outage(&world, async || Ok(())).await?;
    prober.terminate().await?;
    world.ledger().balance(&world.intended())
}

/// How long a process is suspended: longer than a standstill must be to count. SUSPENDED_S in the long form.
fn suspension() -> Duration {
    let given = std::env::var("SUSPENDED_S").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(given.unwrap_or(8))
}

/// kube-controller-manager goes down last, and only after a delay, in which the process is suspended.
async fn suspended_in_a_scale_down() -> Result<(World, Replica)> {
    let mut world = World::new(&DEPLOYMENTS).await?;
    world.config.dependents[0]["scaleDown"]["initialDelay"] = "4s".into();
    let prober = start(&world, USERS[0], false)?;
    world.looks(3).await?;
    world.nodes.cut_all();
    requests(&world.seed, 2, "the others go down", |record| scales(record) && record.status == Some(200)).await?;
    prober.agent.signal(Signal::SIGSTOP)?;
    world.ledger().balance(&[(KCM, 0)]).context("it was too late to suspend it")?;
    Ok((world, prober))
}

/// Lets a suspended process go on after its time.
async fn resume(prober: &Replica) -> Result<()> {
    let since = Instant::now();
    eventually("a long suspension", suspension() + PATIENCE, async || {
        ensure!(since.elapsed() > suspension(), "{:?}", since.elapsed());
        Ok(())
    })
    .await?;
    prober.agent.signal(Signal::SIGCONT)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scale_down_that_was_suspended_goes_on_if_the_outage_does_and_not_if_the_nodes_are_well_again() -> Result<()> {
    // Fault 26, without an election: nothing but the process itself knows that it stood still.
    try_join_all([true, false].map(async |well_again| {
        let (world, mut prober) = suspended_in_a_scale_down().await?;
        if well_again {
            world.nodes.heal_all();
        }
        resume(&prober).await?;
        if !well_again {
            world.held_down().await?;
            world.nodes.heal_all();
        }
        world.free().await?;
        world.looks(3).await?;
        prober.terminate().await?;
        let asked = world.seed.requests().count(|record| scales(record) && record.name == KCM);
        ensure!((asked == 0) == well_again, "{KCM} was written {asked} times");
        let spared = |name: &str| well_again && name == KCM;
        let intended = world.intended().into_iter().map(|(name, changes)| (name, if spared(name) { 0 } else { changes }));
        world.ledger().balance(&intended.collect::<Vec<_>>())
    }))
    .await
    .map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_was_suspended_finds_another_one_and_ends() -> Result<()> {
    let world = World::new(&DEPLOYMENTS).await?;
    let mut first = start(&world, USERS[0], true)?;
    world.looks(3).await?;
    let led = holder(&world);
    let mut second = start(&world, USERS[1], true)?;
    first.agent.signal(Signal::SIGSTOP)?;
    leads(&world, &led).await?;
    world.looks(3).await?;
    untouched(&world)?;
    world.nodes.cut_all();
    world.held_down().await?;
    world.nodes.heal_all();
    resume(&first).await?;
    let code = first.end().await?;
    ensure!(code == 1, "exit code {code}");
    world.free().await?;
    let wrote = world.seed.requests().count(|record| scales(record) && record.user == USERS[0]);
    ensure!(wrote == 0, "the suspended one wrote");
    fenced(&world)?;
    second.terminate().await?;
    ensure!(holder(&world).is_empty(), "the Lease is still held");
    world.ledger().balance(&world.intended())
}
