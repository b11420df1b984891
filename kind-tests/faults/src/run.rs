//! A run: rounds of faults, each followed by an idle time.
//!
//! In the first half agents are also killed and suspended, and the seed may fail for longer than a
//! leader can bear. In the second half the processes live on. What a process uses after its first
//! round is compared with what it uses after its last.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use futures::future::{OptionFuture, join_all};
use tokio::net::TcpStream;
use tokio::signal::ctrl_c;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::agents::Agents;
use crate::idle::{become_idle, measure};
use crate::options::SoakOptions;
use crate::oracle::leaks::MeasuredUsage;
use crate::oracle::starvation::Starvation;
use crate::oracle::violations::ViolationKind;
use crate::report;
use crate::sabotage::act;
use crate::shoot::SoakShoot;
use crate::story::ShootStory;
use crate::story::actor::Actor;
use crate::story::seed::SeedFaults;
use crate::world::SoakWorld;

/// How long the agents have to begin, with everything idle.
const START: Duration = Duration::from_secs(4);
/// How often the oracle judges.
const TICK: Duration = Duration::from_millis(100);
/// How often a line says how it goes.
const PROGRESS: Duration = Duration::from_secs(10);

/// Runs it.
///
/// # Errors
/// When something was found, or the soak itself failed.
pub async fn run(options: &SoakOptions) -> Result<()> {
    println!("soak: {options:?}");
    let world = Arc::new(SoakWorld::build(options).await?);
    let agents = Arc::new(Agents::new(&world, Some(&options.binary))?);
    let _kubelets = world.kubelets();
    let mut background = JoinSet::new();
    background.spawn(measure_starvation(world.clone(), agents.clone()));
    background.spawn(judge(world.clone()));
    background.spawn(print_progress(world.clone(), agents.clone(), options.seed));
    begin(&world, &agents, &mut background).await?;

    let mut usage = MeasuredUsage::default();
    for number in 0..options.rounds() {
        let (end, over) = watch::channel(false);
        let round = SoakRound {
            world: &world,
            agents: &agents,
            options,
            number,
            over,
        };
        // Connections that are held are measured too.
        let (interrupted, _held) = tokio::select! {
            done = round.play(end) => done?,
            Some(ended) = background.join_next() => {
                ended??;
                bail!("what goes on in the background has ended")
            }
        };
        let took = become_idle(&world).await.as_secs_f64();
        measure(&world, &agents, &mut usage).await;
        println!("{}", report::progress(&world, &format!("idle {took:.0}s")));
        if interrupted {
            break;
        }
    }
    let violations = &world.oracle.violations;
    for (name, text) in usage.leaks() {
        violations.found(ViolationKind::Leaks, name, &text, &[]);
    }
    for replica in &agents.0 {
        replica.terminate().await;
    }
    background.shutdown().await;
    report::print_found(&world, &agents, options.seed);
    // For a person, and for a program in one line.
    let summary = report::summary(&world, &usage, options);
    println!("{summary:#}\n{summary}");
    ensure!(summary["passed"] == true, "not all is 0 that must be");
    Ok(())
}

/// Lets all shoots be known, and all agents run.
pub async fn begin(
    world: &SoakWorld,
    agents: &Agents,
    background: &mut JoinSet<Result<()>>,
) -> Result<()> {
    for shoot in &world.shoots {
        shoot.publish()?;
    }
    for replica in &agents.0 {
        replica.start()?;
        let replica = replica.clone();
        background.spawn(async move { replica.keep().await });
    }
    sleep(START).await;
    Ok(())
}

/// A round of faults.
pub struct SoakRound<'a> {
    pub world: &'a Arc<SoakWorld>,
    pub agents: &'a Agents,
    pub options: &'a SoakOptions,
    pub number: u32,
    pub over: watch::Receiver<bool>,
}

impl SoakRound<'_> {
    fn actor(&self, name: &str) -> Actor {
        let name = format!("{name}, round {}", self.number);
        Actor::new(self.options.seed, &name, self.over.clone())
    }

    fn story(&self, shoot: &Arc<SoakShoot>, what: &str) -> ShootStory {
        ShootStory {
            world: self.world.clone(),
            shoot: shoot.clone(),
            actor: self.actor(&format!("{what} of {}", shoot.namespace)),
        }
    }

    fn faults(&self, what: &str) -> SeedFaults<'_> {
        SeedFaults {
            world: self.world,
            agents: self.agents,
            actor: self.actor(what),
        }
    }

    /// Lets all happen until the round is over: whether a person wants to see what there is so far,
    /// and the connections that a sabotage holds.
    pub async fn play(&self, end: watch::Sender<bool>) -> Result<(bool, Option<Vec<TcpStream>>)> {
        let (rounds, shoots) = (self.options.rounds(), &self.world.shoots);
        let living_on = rounds > 1 && self.number >= rounds / 2;
        // What is done wrong is done to the first shoot, and nothing else happens to that one.
        let sabotage = self.options.sabotage;
        let disturbed = shoots.iter().skip(usize::from(sabotage.is_some()));
        let sabotage = sabotage.filter(|_| self.number + 1 == rounds);
        let time = async {
            let interrupted = tokio::select! {
                () = sleep(self.options.duration / rounds) => false,
                _ = ctrl_c() => true,
            };
            end.send_replace(true);
            interrupted
        };
        let (interrupted, .., configured, sabotaged) = tokio::join!(
            time,
            join_all(disturbed.map(|shoot| self.story(shoot, "story").round())),
            join_all(
                shoots
                    .iter()
                    .map(|shoot| self.story(shoot, "services").services())
            ),
            self.faults("seed").seed(!living_on),
            OptionFuture::from((!living_on).then(|| self.faults("processes").processes())),
            self.faults("configs").configs(),
            OptionFuture::from(sabotage.map(|wanted| act(self.world, self.agents, wanted))),
        );
        configured?;
        Ok((interrupted, sabotaged.transpose()?))
    }
}

/// The oracle's eyes.
pub async fn judge(world: Arc<SoakWorld>) -> Result<()> {
    let mut ticks = interval(TICK);
    let mut due = Instant::now();
    loop {
        ticks.tick().await;
        let now = Instant::now();
        let late = now.saturating_duration_since(due + TICK);
        world.oracle.disturbances().lag(late, now);
        due = now;
        world.oracle.tick(now);
        world.shoots.iter().for_each(|shoot| shoot.recreate_pods());
    }
}

/// Measures how long threads of the agents and of this process wait for a processor.
async fn measure_starvation(world: Arc<SoakWorld>, agents: Arc<Agents>) -> Result<()> {
    let (mut ticks, mut starvation) = (interval(TICK), Starvation::default());
    loop {
        let now = ticks.tick().await;
        let ids = agents.0.iter().filter_map(|replica| replica.id());
        let ids = ids.filter_map(|id| u32::try_from(id).ok());
        let starved = starvation.measure(ids.chain([std::process::id()]), now);
        world.oracle.disturbances().lag(starved, now);
    }
}

/// Prints how it goes, and what is found.
async fn print_progress(world: Arc<SoakWorld>, agents: Arc<Agents>, seed: u64) -> Result<()> {
    let mut lines = interval(PROGRESS);
    loop {
        lines.tick().await;
        println!("{}", report::progress(&world, ""));
        report::print_found(&world, &agents, seed);
    }
}
