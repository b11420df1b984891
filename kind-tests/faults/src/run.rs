//! A run: rounds of faults, each followed by rest.
//!
//! In the first half agents are also killed and suspended, and the seed may be ill for longer than a leader can bear. In the second
//! half the processes live on. What a process uses at its first rest is compared with what it uses at its last.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use testbed::api::{Authority, MemoryApi};
use testbed::{Bed, KubeApi};
use tokio::signal::ctrl_c;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::agents::Agents;
use crate::disturbances::{Disturbance, Disturbances};
use crate::growth::Growths;
use crate::ledger::Kind;
use crate::options::Options;
use crate::pace::HAND_OVER;
use crate::record::episode::Met;
use crate::report;
use crate::rest::{come_to_rest, judge, measure};
use crate::rng::Rng;
use crate::sabotage::Saboteur;
use crate::seed_faults::SeedFaults;
use crate::service_outages::ServiceOutages;
use crate::shoot::{Api, Shoot};
use crate::starvation::Starvation;
use crate::story::Story;
use crate::world::World;

/// How long the agents have to begin, with everything at rest.
const START: Duration = Duration::from_secs(4);
/// How often the oracle looks.
const TICK: Duration = Duration::from_millis(100);
/// How often a line says how it goes.
const PROGRESS: Duration = Duration::from_secs(10);
/// How often this machine's pace is measured.
const CANARY: Duration = Duration::from_millis(100);
/// How often the nodes of the real shoot are looked at.
const CENSUS: Duration = Duration::from_millis(500);

/// Runs it; whether nothing was found.
pub async fn run(bed: &Bed, options: &Options) -> Result<bool> {
    println!(
        "soak: {} shoots in memory{}, {:?} of faults, seed {}",
        options.shoots,
        if options.real { " and a real one" } else { "" },
        options.duration,
        options.seed
    );
    let world = Arc::new(World::build(options, bed).await?);
    let agents = Arc::new(Agents::new(&world, &options.binary)?);
    let mut background = JoinSet::new();
    let _kubelets = world.kubelets();
    for act in 0..3 {
        let (world, agents) = (world.clone(), agents.clone());
        background.spawn(async move {
            match act {
                0 => census(&world).await,
                1 => canary(&world).await?,
                _ => oracle(&world, &agents).await,
            }
            Ok(())
        });
    }
    for shoot in &world.shoots {
        shoot.publish()?;
        if let Api::Real(real) = &*shoot.api {
            real.manage(true)?;
        }
    }
    for replica in agents.all() {
        replica.start()?;
        let replica = replica.clone();
        background.spawn(async move { replica.keep().await });
    }
    for change in [Disturbances::probers, Disturbances::weeders] {
        change(&world.disturbances, |disturbance: &mut Disturbance| {
            disturbance.begin();
            disturbance.end(Instant::now() + HAND_OVER);
        });
    }
    let teller =
        Arc::new(Teller { world: world.clone(), agents: agents.clone(), options: options.clone(), told: AtomicUsize::new(0) });
    let telling = tokio::spawn({
        let teller = teller.clone();
        async move { teller.run().await }
    });
    sleep(START).await;

    let growths = rounds(&world, &agents, options, &mut background).await?;
    judge(&world, &growths);
    for replica in agents.all() {
        replica.end().await?;
    }
    telling.abort();
    background.shutdown().await;
    teller.tell();
    println!("{}", report::table(&world, &growths, options));
    println!("{}", report::json_line(&world, &growths, options, options.duration));
    Ok(world.ledger.all() == 0)
}

/// All rounds; what the processes used.
async fn rounds(
    world: &Arc<World>,
    agents: &Arc<Agents>,
    options: &Options,
    background: &mut JoinSet<Result<()>>,
) -> Result<Growths> {
    let (rest, resting) = watch::channel(false);
    let story = |shoot| Story::new(world.clone(), shoot, options.seed, resting.clone());
    // What is done wrong is done to the first shoot, and nothing else happens to that one.
    let spared = usize::from(options.sabotage.is_some());
    let mut stories: Vec<Story> = world.shoots.iter().skip(spared).cloned().map(story).collect();
    let mut saboteur = Saboteur::new(world.clone(), agents.clone(), options.sabotage);
    let outages_of = |shoot: &Arc<Shoot>| ServiceOutages {
        world: world.clone(),
        namespace: shoot.namespace.clone(),
        rng: Rng::new(options.seed, &format!("service outages {}", shoot.namespace)),
        rest: resting.clone(),
    };
    let mut service_outages: Vec<ServiceOutages> = world.shoots.iter().map(outages_of).collect();
    let seed_faults = |name: &str| SeedFaults {
        world: world.clone(),
        agents: agents.clone(),
        rng: Rng::new(options.seed, name),
        rest: resting.clone(),
    };
    let mut seed_faults = ["seed", "processes", "configs"].map(seed_faults);
    let count = options.rounds;
    let length = options.duration / count;
    let mut growths = Growths::new();
    let mut interrupted = false;
    for round in 0..count {
        let living_on = count > 1 && round >= count / 2;
        rest.send_replace(false);
        let end = async {
            tokio::select! {
                () = sleep(length) => {}
                // A person wants to see what there is so far.
                _ = ctrl_c() => interrupted = true,
            }
            rest.send_replace(true);
        };
        let [seed, processes, configs] = &mut seed_faults;
        let disturb = async {
            if !living_on {
                processes.processes().await?;
            }
            anyhow::Ok(())
        };
        let last = round + 1 == count;
        let acts = async {
            let ((), told, ended, (), disturbed, configured, sabotaged) = tokio::join!(
                end,
                side_by_side(std::mem::take(&mut stories), Story::round),
                side_by_side(std::mem::take(&mut service_outages), ServiceOutages::round),
                seed.seed(!living_on),
                disturb,
                configs.configs(),
                saboteur.act(last),
            );
            (stories, service_outages) = (told?, ended?);
            disturbed.and(configured).and(sabotaged)
        };
        tokio::select! {
            done = acts => done?,
            Some(ended) = background.join_next() => ended??,
        }
        let took = come_to_rest(world).await;
        measure(world, agents, &mut growths).await;
        println!("{}", report::progress(world, &format!("rest {:.0}s", took.as_secs_f64())));
        if interrupted {
            break;
        }
    }
    Ok(growths)
}

/// Lets all actors act, each in a task of its own, and waits for all.
async fn side_by_side<A, F>(actors: Vec<A>, act: fn(A) -> F) -> Result<Vec<A>>
where
    A: Send + 'static,
    F: Future<Output = A> + Send + 'static,
{
    let mut tasks: JoinSet<A> = JoinSet::new();
    for actor in actors {
        tasks.spawn(act(actor));
    }
    let mut back = Vec::new();
    while let Some(actor) = tasks.join_next().await {
        back.push(actor?);
    }
    Ok(back)
}

/// The oracle's eyes.
async fn oracle(world: &World, agents: &Agents) {
    let mut ticks = interval(TICK);
    let mut due = Instant::now();
    let mut starvation = Starvation::default();
    loop {
        ticks.tick().await;
        let now = Instant::now();
        world.disturbances.lag(now.saturating_duration_since(due + TICK), now);
        due = now;
        let processes = agents.all().filter_map(|replica| u32::try_from(replica.id()?).ok());
        world.disturbances.lag(starvation.look(processes.chain([std::process::id()]), now), now);
        let disturbances = world.disturbances.read(now);
        for shoot in &world.shoots {
            let mut record = shoot.record();
            let tick = record.tick(disturbances, now);
            for (kind, told) in tick.findings {
                let story = record.story(world.ledger.start);
                world.ledger.found(kind, &record.namespace, told, story);
            }
            let Some(over) = tick.over else { continue };
            world.ledger.count("outages");
            let met = over.met();
            world.ledger.count(match (met, over.clean) {
                (Met::InTime, true) => "outages, clean, met in time",
                (Met::Late, true) => "outages, clean, met late",
                (Met::Unknowable, true) => "outages, clean, over before they had to be met",
                (Met::InTime, false) => "outages, disturbed, met in time",
                (Met::Late, false) => "outages, disturbed, met later",
                (Met::Unknowable, false) => "outages, disturbed, over before they could be met",
            });
            if over.clean
                && let Some(latency) = over.latency()
            {
                world.ledger.answered(latency);
                if met == Met::Late && latency > LATE + over.lag {
                    let story = record.story(world.ledger.start);
                    let [latency, lag] = [latency, over.lag].map(|time| time.as_secs_f64());
                    let told =
                        format!("all was at 0 {latency:.1} s after the outage was beyond doubt, on a machine {lag:.1} s late");
                    world.ledger.found(Kind::TooLate, &record.namespace, told, story);
                }
            }
        }
        world.weeder_oracle.tick(&world.ledger, disturbances, now);
    }
}

/// Measures how late this machine is: the time that a trivial request takes to an API server that nobody else asks.
async fn canary(world: &World) -> Result<()> {
    let api = MemoryApi::start(&Authority::new()?, testbed::api::Options::default()).await?;
    let client = KubeApi::connect(&api.kubeconfig("admin")).await?;
    loop {
        sleep(CANARY).await;
        let sent = Instant::now();
        client.text("/readyz").await?;
        world.disturbances.lag(sent.elapsed(), Instant::now());
    }
}

/// Counts the nodes of the real shoot that its kube-controller-manager gives up, and lets those be ready again that renew.
async fn census(world: &World) {
    let mut lost: BTreeSet<String> = BTreeSet::new();
    loop {
        sleep(CENSUS).await;
        for shoot in &world.shoots {
            let Api::Real(real) = &*shoot.api else { continue };
            // It may not answer at this moment.
            let Ok(given_up) = real.given_up().await else { continue };
            for name in &given_up {
                if lost.insert(name.clone()) {
                    world.ledger.count("nodes that the real kube-controller-manager gave up");
                    shoot.note(format!("kube-controller-manager gives {name} up"));
                }
                let cut = shoot.record().nodes.get(name).is_none_or(|node| node.cut);
                let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
                if !cut && shoot.patch_node(name, &ready).await.is_ok() {
                    lost.remove(name);
                }
            }
        }
    }
}

/// A clean outage is beyond doubt 0.25 s after the verdict is possible, and 0.4 s before the first node's end at worst. On a busy machine an
/// answer within this time is in time all the same.
const LATE: Duration = Duration::from_millis(1500);

/// Tells how it goes, and what is found.
struct Teller {
    world: Arc<World>,
    agents: Arc<Agents>,
    options: Options,
    /// How many violations have been told.
    told: AtomicUsize,
}

impl Teller {
    async fn run(&self) {
        let mut lines = interval(PROGRESS);
        loop {
            lines.tick().await;
            println!("{}", report::progress(&self.world, ""));
            self.tell();
        }
    }

    fn tell(&self) {
        for violation in self.world.ledger.violations(self.told.load(Ordering::Relaxed)) {
            self.told.fetch_add(1, Ordering::Relaxed);
            println!("{}", report::evidence(&violation, &self.agents, &self.options));
        }
    }
}
