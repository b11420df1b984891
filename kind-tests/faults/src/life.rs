//! A world with agents at work. On tokio's paused clock, with the agents in this process, what happens
//! in it follows from its seed.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use common::logging::{LevelFilter, levels};
use futures::future::join_all;
use testbed::kubelets::Kubelets;
use testbed::log::tail;
use testbed::wall;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::layer::SubscriberExt;

use crate::agents::Agents;
use crate::idle::become_idle;
use crate::oracle::violations::ViolationKind;
use crate::pace::LEEWAY;
use crate::shoot::{DEPLOYMENTS, STORES, SoakShoot};
use crate::story::ShootStory;
use crate::story::actor::Actor;
use crate::story::seed::SeedFaults;
use crate::world::SoakWorld;

/// How long the agents have to begin, with everything idle.
const START: Duration = Duration::from_secs(4);
/// How long pods take to start or end: ready replicas follow wanted ones.
const PODS: Duration = Duration::from_millis(300);
/// How often the oracle judges.
const TICK: Duration = Duration::from_millis(100);

/// Lets something happen on a paused clock, in a thread of its own.
pub fn on_paused_clock<T: Send + 'static>(
    seed: u64,
    act: impl AsyncFnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let act = move || {
        // Another test of this process may have installed it already.
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        fastrand::seed(seed);
        let runtime = Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()?;
        runtime.block_on(async {
            wall::follow_tokio();
            act().await
        })
    };
    let ended = std::thread::spawn(act).join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A world with agents at work.
pub struct Life {
    pub world: Arc<SoakWorld>,
    pub agents: Arc<Agents>,
    /// Where all stands that the agents of this thread log, which `LOG` may name.
    pub log: PathBuf,
    seed: u64,
    _kubelets: Kubelets,
    background: JoinSet<Result<()>>,
    _listening: DefaultGuard,
}

impl Life {
    /// A world without an agent at work. Without a binary they are tasks of this process.
    pub async fn new(seed: u64, shoots: u16, binary: Option<&Path>) -> Result<Self> {
        let leeway = binary.map_or(Duration::ZERO, |_| LEEWAY);
        let world = Arc::new(SoakWorld::build(seed, shoots, leeway).await?);
        let agents = Arc::new(Agents::new(&world, binary)?);
        let log = std::env::var_os("LOG").map_or(agents.0[0].start.log.clone(), PathBuf::from);
        world.credentials.watch(&log);
        Ok(Self {
            _kubelets: Kubelets::start(world.seed.store(), &[DEPLOYMENTS, STORES], PODS),
            _listening: listen(&log)?,
            background: JoinSet::from_iter([judge(world.clone())]),
            world,
            agents,
            log,
            seed,
        })
    }

    /// The same with so many replicas at work at most, started again whenever they end: two probers
    /// and a weeder.
    pub async fn begin(
        seed: u64,
        shoots: u16,
        replicas: usize,
        binary: Option<&Path>,
    ) -> Result<Self> {
        let mut life = Self::new(seed, shoots, binary).await?;
        for replica in life.agents.0.iter().take(replicas) {
            replica.start(&[], &[])?;
            let replica = replica.clone();
            life.background.spawn(async move { replica.keep().await });
        }
        sleep(START).await;
        Ok(life)
    }

    /// Lets faults happen for so long; also such that end or suspend an agent, or none.
    pub async fn round(&mut self, number: u32, time: Duration, ends_agents: bool) -> Result<()> {
        let (end, over) = watch::channel(false);
        let (seed, world, agents) = (self.seed, &self.world, &*self.agents);
        let actor = |what: &str| Actor::new(seed, &format!("{what}, round {number}"), over.clone());
        let story = |shoot: &Arc<SoakShoot>, what: &str| ShootStory {
            world: world.clone(),
            shoot: shoot.clone(),
            actor: actor(&format!("{what} of {}", shoot.namespace)),
        };
        let faults = |what: &str| SeedFaults {
            world,
            agents,
            actor: actor(what),
        };
        let time = async {
            sleep(time).await;
            end.send_replace(true);
        };
        let stories = world.shoots.iter().map(|shoot| story(shoot, "story"));
        let services = world.shoots.iter().map(|shoot| story(shoot, "services"));
        let played = async {
            let (_, _, _, failed, _, configured) = tokio::join!(
                time,
                join_all(stories.map(ShootStory::round)),
                join_all(services.map(ShootStory::services)),
                faults("seed").seed(ends_agents),
                async {
                    if ends_agents {
                        faults("processes").processes().await;
                    }
                },
                faults("configs").configs(),
            );
            failed.and(configured)
        };
        tokio::select! {
            played = played => played,
            Some(ended) = self.background.join_next() => {
                ended??;
                bail!("what goes on in the background has ended")
            }
        }
    }

    /// Waits until all is idle, and ends.
    pub async fn end(self) -> Result<Arc<SoakWorld>> {
        become_idle(&self.world).await;
        self.stop().await
    }

    /// Ends.
    pub async fn stop(mut self) -> Result<Arc<SoakWorld>> {
        let oracle = &self.world.oracle;
        oracle.judge_requests(&self.world.seed);
        for replica in &self.agents.0 {
            replica.terminate().await;
        }
        let leaks = self.world.credentials.no_leaks().err();
        let leaks = leaks.map(|leaks| format!("{leaks:#}"));
        // A shoot's task is started again after a panic.
        let panics = Some(tail(&self.log, 1, "panicked")).filter(|line| !line.is_empty());
        for text in leaks.into_iter().chain(panics) {
            let kind = ViolationKind::ProcessFailures;
            oracle.violations.found(kind, "log", &text);
        }
        if let Some(ended) = self.background.try_join_next() {
            ended??;
        }
        self.background.shutdown().await;
        Ok(self.world)
    }
}

/// Writes what the agents of this thread log: as lines of theirs, but by this world's clock and with
/// every span, since one names the replica.
fn listen(log: &Path) -> Result<DefaultGuard> {
    let file = Arc::new(File::create(log)?);
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true);
    let lines = lines.with_timer(now as fn(&mut Writer<'_>) -> fmt::Result);
    let lines = lines.with_writer(file);
    // A credential may stand at any level.
    let lines = lines.with_filter(levels(LevelFilter::TRACE));
    let logged = tracing_subscriber::registry().with(lines);
    Ok(tracing::subscriber::set_default(logged))
}

fn now(writer: &mut Writer<'_>) -> fmt::Result {
    write!(writer, "{:?}", wall::now())
}

/// The oracle's eyes.
async fn judge(world: Arc<SoakWorld>) -> Result<()> {
    let mut ticks = interval(TICK);
    loop {
        ticks.tick().await;
        world.oracle.tick(Instant::now());
        for shoot in &world.shoots {
            shoot.recreate_pods()?;
        }
    }
}
