//! The race: a real kube-controller-manager that gives nodes up 40 s after their last renewal, against the prober that has to stop
//! it before that, outage after outage.
//!
//! ```text
//!  lane 1: kubelets --renew--> shoot's API server <--watches, gives up-- kube-controller-manager     (all real
//!  lane 2:   cut, healed                ^                                        ^ SIGTERM            but the kubelets)
//!  ...                                  | probes                                 | Deployment at 0
//!                             dependency-watchdog --------writes--------> seed's API server --audit log--> when
//! ```
//!
//! What counts is taken from what was really written: the verdict's instant from the stamps on the leases, the writes from the
//! seed's audit log, lost nodes from a watch on the shoot.

mod kubelets;
mod lane;
mod leader;
mod referee;
mod summary;
mod trial;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use futures::future::{join_all, try_join_all};
use kind_tests::audit::Asked;
use kind_tests::{Bed, ProberConfig, Seed, scenario};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::{sleep, timeout};

use crate::fleet::fill::{Filling, fill};
use crate::fleet::light::{Counts, LightShoots, Plan};
use crate::report::progress;
use lane::{Lane, Outage, is_lane};
use leader::{Replicas, Succession};
use summary::{CONTROL, Findings};
use trial::{Change, Ending, Trial, seconds};

/// Kubernetes' default nodeMonitorGracePeriod, with which Gardener's own configuration is taken.
const GRACE_S: u64 = 40;
/// Nodes of each healthy shoot, as many as the reference was measured with.
const NODES_OF_LOAD: usize = 100;
/// The longest that one trial takes; it ends by itself long before.
const TRIAL: Duration = Duration::from_secs(420);

/// Race a real kube-controller-manager, outage after outage
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Outages to race
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,
    /// Shoots that have outages side by side
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    lanes: u32,
    /// Where the random numbers begin; drawn when absent
    #[arg(long)]
    seed: Option<u64>,
    /// Seconds after which a node is given up; with fewer than 40 the prober looks more often than in production
    #[arg(long, default_value_t = GRACE_S, value_parser = clap::value_parser!(u64).range(4..))]
    grace: u64,
    /// Healthy shoots of 100 nodes that the same prober probes
    #[arg(long, default_value_t = 0)]
    load: usize,
    /// Race with no prober at all, to see what is lost without one
    #[arg(long, conflicts_with_all = ["change", "load"])]
    control: bool,
    /// End the leading prober in mid-outage; a quarter of the lanes then stays healthy
    #[arg(long)]
    change: Option<Ways>,
}

/// Merge the JSON lines of several races into one table
#[derive(Args, Clone, Debug)]
pub struct Merge {
    /// Files with what races have printed
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// How a leader ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Ways {
    /// SIGKILL.
    Kill,
    /// SIGTERM, as in a rollout.
    Replace,
    /// In turn.
    Both,
}

/// Prints what several races found together.
pub fn merge(options: &Merge) -> Result<()> {
    let read = |path: &PathBuf| std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let texts: Vec<String> = options.files.iter().map(read).collect::<Result<_>>()?;
    let (name, findings) = Findings::merged(&texts)?;
    findings.report(&name, format!("{} runs", texts.len())).print();
    Ok(())
}

/// Runs the race.
pub fn run(options: Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(|| rand::rng().random());
    progress(format!("seed {seed}: repeat with --seed {seed}"));
    scenario(async move |bed| {
        ensure!(!bed.is_given(), "the race needs control planes of its own: unset SEED_KUBECONFIG and SHOOT_KUBECONFIG");
        let race = Race::prepare(bed, options, seed).await?;
        race.run().await
    })
}

struct Race {
    options: Options,
    random_seed: u64,
    seed: Arc<Seed>,
    lanes: Vec<Lane>,
    replicas: Option<Replicas>,
    load: Option<LightShoots>,
}

impl Race {
    async fn prepare(bed: &'static Bed, options: Options, random_seed: u64) -> Result<Self> {
        let grace = Duration::from_secs(options.grace);
        let seed = bed.own_seed().await?;
        let programs = bed.programs().await?;
        progress(format!("starting {} API servers", options.lanes));
        let lanes = (1..=options.lanes as usize).map(|number| Lane::create(bed, &seed, number, grace, &programs));
        let mut lanes = try_join_all(lanes).await?;
        prepare_all(&mut lanes, &mut StdRng::seed_from_u64(random_seed)).await?;
        let load = match options.load {
            0 => None,
            count => Some(start_load(&seed, count).await?),
        };
        let replicas = if options.control { None } else { Some(start_prober(&seed, &lanes, &options).await?) };
        Ok(Self { options, random_seed, seed, lanes, replicas, load })
    }

    async fn run(mut self) -> Result<()> {
        let Options { trials, lanes, seed: _, grace, load, control, change } = self.options.clone();
        let mut findings = match change {
            Some(ways) => self.rounds(ways).await?,
            None => self.side_by_side().await?,
        };
        findings.wrong_writes += writes_to_load(&self.seed);
        let name = match (change, load) {
            _ if control => CONTROL,
            (Some(_), _) => "race-rollout",
            (None, 0) => "race",
            (None, _) => "race-load",
        };
        let seed = self.random_seed;
        let mut what = format!("{trials} outages in {lanes} shoots side by side, grace {grace} s, seed {seed}");
        if load > 0 {
            what.push_str(&format!(", {load} healthy shoots of {NODES_OF_LOAD} nodes probed beside them"));
        }
        let mut report = findings.report(name, what);
        if let Some(light) = &mut self.load {
            let probes = Counts::sum(&light.counts().await?).leases;
            report.figure("load_probes", "probes of the healthy shoots in the meantime", probes as f64, "");
        }
        report.print();
        Ok(())
    }

    /// The random numbers of one trial, whichever lane it runs in.
    fn random(&self, trial: usize) -> StdRng {
        StdRng::seed_from_u64(self.random_seed.wrapping_add(trial as u64))
    }

    /// Every lane goes from outage to outage, independent of the others.
    async fn side_by_side(&mut self) -> Result<Findings> {
        let wanted = self.options.trials as usize;
        let lanes = std::mem::take(&mut self.lanes);
        let (next, race) = (AtomicUsize::new(1), &*self);
        let ran = join_all(lanes.into_iter().map(async |mut lane| {
            let mut trials = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number > wanted {
                    return trials;
                }
                match timeout(TRIAL, race.trial(&mut lane, number)).await {
                    Ok(Ok(trial)) => trials.push(trial),
                    // A lane in an unknown state races no more; what it did not race shows in the count.
                    Ok(Err(error)) => {
                        progress(format!("trial {number} came to nothing: {error:#}"));
                        return trials;
                    }
                    Err(_) => {
                        progress(format!("trial {number} did not end within {TRIAL:?}\n{}", lane.story()));
                        return trials;
                    }
                }
            }
        }))
        .await;
        let mut trials: Vec<Trial> = ran.into_iter().flatten().collect();
        trials.sort_by_key(|trial| trial.number);
        Ok(Findings { trials, wanted, wrong_writes: 0 })
    }

    async fn trial(&self, lane: &mut Lane, number: usize) -> Result<Trial> {
        let mut random = self.random(number);
        lane.prepare(nodes(&mut random), &mut random).await?;
        let delay = self.random_span(2, &mut random);
        let Outage { trial, .. } = lane.outage(number, delay, &mut random).await?;
        tell(&trial, lane, self.replicas.is_some());
        Ok(trial)
    }

    /// A random part of so many of the kubelets' beats.
    fn random_span(&self, beats: u32, random: &mut StdRng) -> Duration {
        (Duration::from_secs(self.options.grace) / 4 * beats).mul_f64(random.random())
    }

    /// In each round a quarter of the lanes stays healthy and the others have an outage; the leader ends at a moment that is a
    /// random one in each outage.
    async fn rounds(&mut self, ways: Ways) -> Result<Findings> {
        let mut findings = Findings { wanted: self.options.trials as usize, ..Findings::default() };
        for round in 1.. {
            let missing = findings.wanted - findings.trials.len();
            if missing == 0 {
                break;
            }
            let kill = ways == Ways::Kill || (ways == Ways::Both && round % 2 == 1);
            let ran = timeout(TRIAL, self.round(round, kill, missing, &mut findings)).await;
            if let Err(error) = ran.map_err(anyhow::Error::from).flatten() {
                // Lanes in an unknown state race no more; what they did not race shows in the count.
                progress(format!("round {round} came to nothing: {error:#}"));
                break;
            }
        }
        Ok(findings)
    }

    async fn round(&mut self, round: usize, kill: bool, missing: usize, findings: &mut Findings) -> Result<()> {
        let mut random = self.random(round);
        let mut lanes = std::mem::take(&mut self.lanes);
        let by = random.random_range(0..lanes.len());
        lanes.rotate_left(by);
        prepare_all(&mut lanes, &mut random).await?;
        sleep(self.random_span(2, &mut random)).await;
        let mut healthy = lanes.split_off(lanes.len() - lanes.len().div_ceil(4).min(lanes.len() - 1));
        if missing < lanes.len() {
            healthy.extend(lanes.split_off(missing));
        }
        let marks: Vec<_> = healthy.iter().map(Lane::mark).collect();
        // Each outage begins at a moment of its own, at most a grace before the signal.
        let moment = Duration::from_secs(self.options.grace);
        let first = findings.trials.len() + 1;
        let delays: Vec<_> = lanes.iter().map(|_| (moment - self.random_span(4, &mut random), random.random())).collect();
        let outages = lanes.iter_mut().zip(&delays).enumerate().map(async |(index, (lane, &(delay, seed)))| {
            let mut random = StdRng::seed_from_u64(seed);
            lane.outage(first + index, delay, &mut random).await
        });
        let change = async {
            sleep(moment).await;
            progress(format!("round {round}: the leader is {}", if kill { "killed" } else { "asked to end" }));
            self.replicas.as_mut().context("no prober leads")?.change(&self.seed, kill).await
        };
        let (outages, change) = tokio::join!(try_join_all(outages), change);
        let (outages, change) = (outages?, change?);
        for (outage, lane) in outages.into_iter().zip(&lanes) {
            let trial = with_change(outage, change, kill);
            tell(&trial, lane, false);
            findings.trials.push(trial);
        }
        for (lane, mark) in healthy.iter().zip(&marks) {
            let wrong = lane.writes_since(mark).len();
            if wrong > 0 {
                progress(format!("a shoot without an outage was written to\n{}", lane.story()));
            }
            findings.wrong_writes += wrong;
        }
        lanes.append(&mut healthy);
        self.lanes = lanes;
        Ok(())
    }
}

/// Lets all lanes have some nodes and waits until all are as in quiet times.
async fn prepare_all(lanes: &mut [Lane], random: &mut StdRng) -> Result<()> {
    let seeds: Vec<u64> = lanes.iter().map(|_| random.random()).collect();
    let prepared = lanes.iter_mut().zip(seeds).map(async |(lane, seed)| {
        let mut random = StdRng::seed_from_u64(seed);
        lane.prepare(nodes(&mut random), &mut random).await
    });
    try_join_all(prepared).await.map(drop)
}

/// One prober, or two, whose initial delay is over.
async fn start_prober(seed: &Seed, lanes: &[Lane], options: &Options) -> Result<Replicas> {
    let config = if options.grace < GRACE_S { ProberConfig::default() } else { ProberConfig::gardener() };
    let mut replicas = Replicas::start(seed, config).await?;
    if options.change.is_some() {
        replicas.add_standby(seed).await?;
    }
    progress("waiting until the prober's initial delay is over");
    try_join_all(lanes.iter().map(Lane::is_watched)).await?;
    Ok(replicas)
}

/// Healthy shoots of the usual size, on the same seed.
async fn start_load(seed: &Seed, shoots: usize) -> Result<LightShoots> {
    progress(format!("filling the seed with {shoots} healthy shoots"));
    let light = LightShoots::start(Plan::healthy(shoots, NODES_OF_LOAD)).await?;
    fill(seed.api(), &light, &Filling { shoots, foreign_secrets: 0, pods_take: None }).await?;
    Ok(light)
}

/// Writes to shoots that are none of the lanes; there is nothing to be written there.
fn writes_to_load(seed: &Seed) -> usize {
    let wrong = |asked: &Asked| asked.resource.starts_with("deployments") && asked.verb == "patch" && !is_lane(&asked.namespace);
    seed.asked().iter().filter(|asked| wrong(asked)).count()
}

fn with_change(outage: Outage, change: Succession, killed: bool) -> Trial {
    let Outage { mut trial, cut, kcm_written } = outage;
    trial.change = Some(Change {
        killed,
        after_outage: seconds(cut, change.signal),
        election: seconds(change.signal, change.leads),
        written_before: kcm_written.is_some_and(|at| at <= change.signal),
        lead_to_write: kcm_written.map(|at| seconds(change.leads, at)).filter(|after| *after > 0.0),
    });
    trial
}

/// 3 to 100 nodes; as many shoots have 3 to 10 as have 30 to 100.
fn nodes(random: &mut StdRng) -> usize {
    (3.0 * (100.0_f64 / 3.0).powf(random.random())).round() as usize
}

/// Tells how a trial went, and where it should have been won the whole story if it was not.
fn tell(trial: &Trial, lane: &Lane, should_win: bool) {
    let seconds = |value: Option<f64>| value.map_or("never".into(), |value| format!("{value:.3} s"));
    progress(format!(
        "trial {} in lane {}, {} nodes: {:?}; verdict {:.1} s after the cut, {:.1} s to act; first write after {}, \
         kube-controller-manager's after {}, ended in {}, {} left; {} Unknown; restored after {}",
        trial.number,
        trial.lane,
        trial.nodes,
        trial.ending(),
        trial.verdict,
        trial.available,
        seconds(trial.first_write),
        seconds(trial.kcm_write),
        seconds(trial.kcm_exit),
        seconds(trial.left),
        trial.unknown,
        seconds(trial.restored),
    ));
    if trial.restored.is_none() || (should_win && trial.ending() == Ending::Lost) {
        progress(lane.story());
    }
}
