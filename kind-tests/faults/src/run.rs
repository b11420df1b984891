//! A run: rounds of faults, each followed by an idle time.
//!
//! In the first half agents are also killed and suspended, and the seed may fail for longer than a
//! leader can bear. In the second half the processes live on. What a process uses after its first
//! round is compared with what it uses after its last.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use futures::future::{OptionFuture, join_all};
use testbed::api::MemoryApi;
use testbed::authority::Authority;
use testbed::{Bed, KubeApi};
use tokio::signal::ctrl_c;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::agents::Agents;
use crate::idle::{become_idle, measure};
use crate::options::SoakOptions;
use crate::oracle::growth::Growths;
use crate::oracle::ledger::ViolationKind;
use crate::oracle::starvation::Starvation;
use crate::report;
use crate::sabotage;
use crate::shoot::SoakShoot;
use crate::story::ShootStory;
use crate::story::actor::Actor;
use crate::story::seed::SeedFaults;
use crate::world::SoakWorld;

/// How long the agents have to begin, with everything idle.
const START: Duration = Duration::from_secs(4);
/// How often the oracle looks.
const TICK: Duration = Duration::from_millis(100);
/// How often a line says how it goes.
const PROGRESS: Duration = Duration::from_secs(10);
/// How often this machine's pace is measured.
const CANARY: Duration = Duration::from_millis(100);
/// How often the nodes of the real shoot are looked at.
const CENSUS: Duration = Duration::from_millis(500);

/// Runs it.
///
/// # Errors
/// When something was found, or the soak itself failed.
pub async fn run(bed: &Bed, options: &SoakOptions) -> Result<()> {
    println!("soak: {options:?}");
    let world = Arc::new(SoakWorld::build(options, bed).await?);
    let agents = Arc::new(Agents::new(&world, &options.binary)?);
    let _kubelets = world.kubelets();
    let mut background = JoinSet::new();
    background.spawn(census(world.clone()));
    background.spawn(canary(world.clone()));
    background.spawn(watch_all(world.clone(), agents.clone()));
    for shoot in &world.shoots {
        shoot.publish()?;
        shoot.manage(true);
    }
    for replica in &agents.0 {
        replica.start()?;
        let replica = replica.clone();
        background.spawn(async move { replica.keep().await });
    }
    background.spawn(tell(world.clone(), agents.clone(), options.seed));
    sleep(START).await;

    let growths = rounds(&world, &agents, options, &mut background).await?;
    for (name, text) in growths.grown() {
        world
            .oracle
            .ledger
            .found(ViolationKind::Leaks, name, &text, &[]);
    }
    for replica in &agents.0 {
        replica.terminate().await;
    }
    background.shutdown().await;
    report::print_found(&world, &agents, options.seed);
    // For a person, and for a program in one line.
    let summary = report::summary(&world, &growths, options);
    println!("{summary:#}\n{summary}");
    ensure!(summary["passed"] == true, "not all is 0 that must be");
    Ok(())
}

/// All rounds; what the processes used.
async fn rounds(
    world: &Arc<SoakWorld>,
    agents: &Agents,
    options: &SoakOptions,
    background: &mut JoinSet<Result<()>>,
) -> Result<Growths> {
    let count = options.rounds();
    let mut growths = Growths::default();
    let mut interrupted = false;
    for round in 0..count {
        let living_on = count > 1 && round >= count / 2;
        let (end, over) = watch::channel(false);
        let actor = |name: &str| {
            Actor::new(
                options.seed,
                &format!("{name}, round {round}"),
                over.clone(),
            )
        };
        let story = |shoot: &Arc<SoakShoot>, what| {
            let actor = actor(&format!("{what} of {}", shoot.namespace));
            ShootStory {
                world: world.clone(),
                shoot: shoot.clone(),
                actor,
            }
        };
        let faults = |what| SeedFaults {
            world,
            agents,
            actor: actor(what),
        };
        // What is done wrong is done to the first shoot, and nothing else happens to that one.
        let disturbed = world
            .shoots
            .iter()
            .skip(usize::from(options.sabotage.is_some()));
        let sabotage = options.sabotage.filter(|_| round + 1 == count);
        let time = async {
            tokio::select! {
                () = sleep(options.duration / count) => {}
                // A person wants to see what there is so far.
                _ = ctrl_c() => interrupted = true,
            }
            end.send_replace(true);
        };
        let acts = async {
            let (.., configured, sabotaged) = tokio::join!(
                time,
                join_all(disturbed.map(|shoot| story(shoot, "story").round())),
                join_all(
                    world
                        .shoots
                        .iter()
                        .map(|shoot| story(shoot, "services").services())
                ),
                faults("seed").seed(!living_on),
                OptionFuture::from((!living_on).then(|| faults("processes").processes())),
                faults("configs").configs(),
                OptionFuture::from(sabotage.map(|wanted| sabotage::act(world, agents, wanted))),
            );
            configured.and(sabotaged.transpose())
        };
        // Connections that are held are measured too.
        let _held = tokio::select! {
            done = acts => done?,
            Some(ended) = background.join_next() => {
                ended??;
                bail!("what goes on in the background has ended")
            }
        };
        let took = become_idle(world).await;
        measure(world, agents, &mut growths).await;
        println!(
            "{}",
            report::progress(world, &format!("idle {:.0}s", took.as_secs_f64()))
        );
        if interrupted {
            break;
        }
    }
    Ok(growths)
}

/// The oracle's eyes.
async fn watch_all(world: Arc<SoakWorld>, agents: Arc<Agents>) -> Result<()> {
    let mut ticks = interval(TICK);
    let mut due = Instant::now();
    let mut starvation = Starvation::default();
    loop {
        ticks.tick().await;
        let now = Instant::now();
        let processes = agents
            .0
            .iter()
            .filter_map(|replica| u32::try_from(replica.id()?).ok());
        let starved = starvation.look(processes.chain([std::process::id()]), now);
        world
            .oracle
            .disturbances
            .lock()
            .lag(starved.max(now.saturating_duration_since(due + TICK)), now);
        due = now;
        world.oracle.tick(now);
        world.shoots.iter().for_each(|shoot| shoot.recreate_pods());
    }
}

/// Measures how late this machine is: the time that a trivial request takes to an API server that
/// nobody else asks.
async fn canary(world: Arc<SoakWorld>) -> Result<()> {
    let api = MemoryApi::start(&Authority::new()?, testbed::api::Options::default()).await?;
    let client = KubeApi::connect(&api.kubeconfig("admin")).await?;
    loop {
        sleep(CANARY).await;
        let sent = Instant::now();
        client.text("/version").await?;
        world
            .oracle
            .disturbances
            .lock()
            .lag(sent.elapsed(), Instant::now());
    }
}

/// Looks after the nodes of the real shoot.
async fn census(world: Arc<SoakWorld>) -> Result<()> {
    let mut lost = BTreeSet::new();
    loop {
        sleep(CENSUS).await;
        for shoot in &world.shoots {
            shoot.census(&mut lost, &world.oracle.ledger).await;
        }
    }
}

/// Tells how it goes, and what is found.
async fn tell(world: Arc<SoakWorld>, agents: Arc<Agents>, seed: u64) -> Result<()> {
    let mut lines = interval(PROGRESS);
    loop {
        lines.tick().await;
        println!("{}", report::progress(&world, ""));
        report::print_found(&world, &agents, seed);
    }
}
