//! A world on tokio's paused clock, with the agents in this process: what happens in it follows from
//! its seed.

use std::sync::Arc;

use anyhow::Result;
use testbed::kubelets::Kubelets;
use testbed::wall;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;

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

/// A world with agents at work.
pub struct Life {
    pub world: Arc<SoakWorld>,
    pub agents: Arc<Agents>,
    _kubelets: Kubelets,
    background: JoinSet<Result<()>>,
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
