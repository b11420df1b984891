//! A prober's own clock that is off or steps, and a process that stands still in the middle of its
//! work: the real binary, alone in the world of the soak, and judged by its oracle.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_server::{Record, Requests};
use chrono::{DateTime, TimeDelta, Utc};
use clap::Parser;
use faults::agents::{Agents, prober_config};
use faults::options::SoakOptions;
use faults::oracle::record::ShootRecord;
use faults::run::judge;
use faults::shoot::{DEPLOYMENTS, KCM, LEASES};
use faults::world::SoakWorld;
use futures::future::try_join_all;
use testbed::agent::{AgentStart, RunningAgent};
use testbed::kubelets::Kubelets;
use testbed::{PATIENCE, eventually, eventually_within, tolerating_stalls};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// A lead that outlasts every suspension: nothing but the process itself knows that it stood still.
const PATIENT: [&str; 2] = [
    "--leader-elect-lease-duration=1200s",
    "--leader-elect-renew-deadline=900s",
];

/// A world with one shoot and one prober.
struct Alone {
    world: Arc<SoakWorld>,
    start: AgentStart,
    _kubelets: Kubelets,
    _oracle: JoinSet<Result<()>>,
}

impl Alone {
    async fn build() -> Result<Self> {
        let options = SoakOptions::parse_from(["soak", "none", "--shoots=1", "--seed=1"]);
        let world = Arc::new(SoakWorld::build(&options).await?);
        let agents = Agents::new(&world, Some(&testbed::agent::binary()?))?;
        let start = agents.0[0].start.clone().with(PATIENT);
        std::fs::write(&start.config, prober_config("1s"))?;
        world.shoots[0].publish()?;
        Ok(Self {
            _kubelets: world.kubelets(),
            _oracle: JoinSet::from_iter([judge(world.clone())]),
            start,
            world,
        })
    }

    /// The oracle knows from now on that the prober is at work, or that it is not.
    fn at_work(&self, is_at_work: bool) {
        let (now, mut disturbances) = (Instant::now(), self.world.oracle.disturbances());
        let since = is_at_work.then_some(now);
        disturbances.at_work.insert("prober-a", since);
        disturbances.suspended = Some(now);
    }

    fn cut(&self, is_cut: bool) {
        for node in self.world.shoots[0].record().nodes.values_mut() {
            node.cut = is_cut;
        }
    }

    /// Waits until the shoot is so.
    async fn until(&self, what: &str, so: impl Fn(&ShootRecord) -> bool) -> Result<()> {
        let shoot = &self.world.shoots[0];
        eventually(what, async || {
            let record = shoot.record();
            ensure!(so(&record), "{:?}", record.dependents);
            Ok(())
        })
        .await
    }

    async fn held_down(&self) -> Result<()> {
        self.until("all held down", |record| {
            let mut all = record.dependents.values();
            all.all(|one| one.replicas == 0 && one.marker)
        })
        .await
    }

    async fn restored(&self) -> Result<()> {
        self.until("all as before", |record| {
            record.why_not_idle(Instant::now()).is_none()
        })
        .await
    }

    /// Waits until the shoot has answered so many more probes.
    async fn probed(&self, count: usize) -> Result<()> {
        let requests = self.world.shoots[0].api.requests();
        answered(requests, count, |record| record.resource == LEASES).await
    }

    /// How often the prober asked for another scale of kube-controller-manager.
    fn writes(&self) -> usize {
        let is_it = |record: &Record| scales(record) && record.name == KCM;
        self.world.seed.requests().count(is_it)
    }

    /// Fails unless the oracle has found nothing wrong.
    async fn end(self, prober: RunningAgent) -> Result<()> {
        ensure!(prober.terminate().await?.success(), "it did not end well");
        let totals = self.world.oracle.violations.totals();
        ensure!(totals.all() == 0, "{:#?}", totals.evidence);
        Ok(())
    }
}

/// Waits until so many more requests that are so were answered well.
async fn answered(requests: &Requests, count: usize, so: impl Fn(&Record) -> bool) -> Result<()> {
    let before = requests.total();
    let more =
        |record: &&Record| record.number >= before && record.status == Some(200) && so(record);
    let enough = requests.wait_for(|all| (all.iter().filter(more).count() >= count).then_some(()));
    let enough = timeout(PATIENCE, enough).await;
    enough.context("no such requests")
}

/// Whether a request is a write to a Deployment.
fn scales(record: &Record) -> bool {
    record.verb == "patch" && record.resource == DEPLOYMENTS
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_clock_that_is_off_or_steps_makes_no_outage() -> Result<()> {
    tolerating_stalls(async || {
        let alone = Alone::build().await?;
        let file = alone.start.config.with_file_name("clock");
        let set = |seconds: i64| {
            // Replaced as a whole: half a number must not be read.
            let next = file.with_extension("next");
            std::fs::write(&next, seconds.to_string())?;
            std::fs::rename(next, &file)
        };
        set(-60)?;
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
        let start = AgentStart {
            environment: environment.into(),
            ..alone.start.clone()
        };
        let prober = start.run()?;
        alone.at_work(true);
        alone.probed(8).await?;
        // It does live in that time, by its own log.
        let logged = prober.log("\"ts\"");
        let time = logged.last().and_then(|line| line["ts"].as_str());
        let off = time.context("no log")?.parse::<DateTime<Utc>>()? - Utc::now();
        let is_off = (off + TimeDelta::seconds(60)).abs() < TimeDelta::seconds(20);
        ensure!(is_off, "its clock is {off} off");
        let steps = async |all: &[i64]| {
            for ahead in all {
                set(*ahead)?;
                alone.probed(4).await?;
            }
            anyhow::Ok(())
        };
        steps(&[60, -60, 3600, 0]).await?;
        ensure!(alone.writes() == 0, "it was written to");
        alone.cut(true);
        alone.held_down().await?;
        steps(&[60, -60]).await?;
        alone.held_down().await?;
        alone.cut(false);
        alone.restored().await?;
        steps(&[60, -60]).await?;
        alone.restored().await?;
        let writes = alone.writes();
        ensure!(writes == 2, "{writes} writes");
        alone.end(prober).await
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
/// on after that, or not (fault 26).
async fn suspended(goes_on: bool) -> Result<()> {
    let alone = Alone::build().await?;
    // It goes down last, and only after a delay, in which the process is suspended.
    let config = prober_config("1s");
    let delayed = config.replacen("scaleDown:\n", "scaleDown:\n    initialDelay: 4s\n", 1);
    std::fs::write(&alone.start.config, delayed)?;
    let prober = alone.start.run()?;
    alone.at_work(true);
    alone.probed(3).await?;
    alone.cut(true);
    answered(alone.world.seed.requests(), 2, scales).await?;
    prober.pause(true)?;
    alone.at_work(false);
    ensure!(alone.writes() == 0, "it was too late to suspend it");
    if !goes_on {
        alone.cut(false);
    }
    let since = Instant::now();
    eventually_within("a long suspension", suspension() + PATIENCE, async || {
        ensure!(since.elapsed() > suspension(), "{:?}", since.elapsed());
        Ok(())
    })
    .await?;
    prober.pause(false)?;
    alone.at_work(true);
    if goes_on {
        alone.held_down().await?;
        alone.cut(false);
    }
    alone.restored().await?;
    alone.probed(3).await?;
    let writes = alone.writes();
    ensure!((writes > 0) == goes_on, "{KCM} was written {writes} times");
    alone.end(prober).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_scale_down_goes_on_only_with_its_outage() -> Result<()> {
    let run = |goes_on| tolerating_stalls(async move || suspended(goes_on).await);
    try_join_all([true, false].map(run)).await.map(drop)
}
