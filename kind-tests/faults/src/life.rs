//! A world on tokio's paused clock, with the agents in this process: what happens in it follows from
//! its seed.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use common::logging::{LevelFilter, ZapLayer};
use serde_json::Value;
use testbed::kubelets::Kubelets;
use testbed::wall;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt;

use crate::agents::Agents;
use crate::idle::become_idle;
use crate::options::SoakOptions;
use crate::run::{SoakRound, begin, judge};
use crate::world::SoakWorld;

/// Lets something happen on a paused clock, in a thread of its own.
pub fn on_paused_clock<T: Send + 'static>(
    seed: u64,
    act: impl AsyncFnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let act = move || {
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

/// Lets the oracle judge what the agents of this thread tell of outages, and keeps all that they log
/// if `LOG` names a file.
fn listen(world: &Arc<SoakWorld>) -> Result<DefaultGuard> {
    let oracle = world.oracle.clone();
    let file = std::env::var_os("LOG").map(File::create).transpose()?;
    let level = match file {
        Some(_) => LevelFilter::DEBUG,
        None => LevelFilter::INFO,
    };
    let judge = move |line: Vec<u8>| {
        if let Some(mut file) = file.as_ref() {
            file.write_all(&line).ok();
        }
        match serde_json::from_slice::<Value>(&line) {
            Ok(line) if line["record"].is_string() => oracle.told(&line, Instant::now()),
            _ => {}
        }
    };
    let layer = ZapLayer::new(level, judge, wall::now);
    let logged = tracing_subscriber::registry().with(layer);
    Ok(tracing::subscriber::set_default(logged))
}

/// A world with agents at work.
pub struct Life {
    pub world: Arc<SoakWorld>,
    pub agents: Arc<Agents>,
    _kubelets: Kubelets,
    background: JoinSet<Result<()>>,
    _log: DefaultGuard,
}

impl Life {
    /// Begins with so many replicas at most: two probers and a weeder.
    pub async fn begin(options: &SoakOptions, replicas: usize) -> Result<Self> {
        let world = Arc::new(SoakWorld::build(options).await?);
        let mut agents = Agents::new(&world, None)?;
        agents.0.truncate(replicas);
        let mut life = Self {
            _kubelets: world.kubelets(),
            agents: Arc::new(agents),
            background: JoinSet::new(),
            _log: listen(&world)?,
            world,
        };
        life.background.spawn(judge(life.world.clone()));
        begin(&life.world, &life.agents, &mut life.background).await?;
        Ok(life)
    }

    /// Lets a round of faults happen.
    pub async fn round(&self, options: &SoakOptions) -> Result<()> {
        let (end, over) = watch::channel(false);
        let round = SoakRound {
            world: &self.world,
            agents: &self.agents,
            options,
            number: 0,
            over,
        };
        round.play(end).await.map(drop)
    }

    /// Waits until all is idle, and ends.
    pub async fn end(mut self) -> Result<Arc<SoakWorld>> {
        become_idle(&self.world).await;
        self.world.oracle.forbidden(&self.world.seed);
        for replica in &self.agents.0 {
            replica.terminate().await;
        }
        if let Some(ended) = self.background.try_join_next() {
            ended??;
        }
        self.background.shutdown().await;
        Ok(self.world)
    }
}
