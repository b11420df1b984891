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
//! What counts is taken from what was really written: the verdict's instant from the stamps on the leases, the writes and who made
//! them from the seed's audit log, lost nodes from a watch on the shoot.

pub mod away;
pub mod change;
mod lane;
mod referee;
mod replicas;
mod seeded;
pub mod summary;
pub mod trial;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::TimeDelta;
use clap::Args;
use futures::future::{join_all, try_join_all};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testbed::audit::Mark;
use testbed::{Bed, ProberConfig, Seed};
use tokio::time::{sleep, timeout};

use crate::fleet::fill::{Filling, fill};
use crate::fleet::light::{LightShoots, Plan};
use crate::report::kept::Kept;
use crate::report::progress;
use crate::writes::writes;
use change::Change;
use lane::{Lane, is_lane};
use replicas::Replicas;
use seeded::seeded;
use summary::{CONTROL, Findings};
use trial::{Ending, Fault, Outage, Trial};

/// Kubernetes' default nodeMonitorGracePeriod, with which Gardener's own configuration is taken.
const GRACE_S: u64 = 40;
/// Nodes of each healthy shoot, as many as the Go original was measured with.
const NODES_OF_LOAD: usize = 100;
/// The longest that one trial takes; it ends by itself long before.
const TRIAL: Duration = Duration::from_secs(480);

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
    #[arg(long, default_value_t = 0, conflicts_with = "change")]
    load: usize,
    /// Race with no prober at all, to see what is lost without one
    #[arg(long, conflicts_with_all = ["change", "load"])]
    control: bool,
    /// What happens to the leader at a random moment of an outage, while a quarter of the lanes stays healthy; several take turns
    #[arg(long, value_enum, value_delimiter = ',')]
    change: Vec<Change>,
}

impl Options {
    /// How many replicas there are.
    fn replicas(&self) -> Result<usize> {
        let Some(first) = self.change.first() else { return Ok(1) };
        let alone = |change: &Change| self.change.len() == 1 || !matches!(change, Change::Restarted | Change::None);
        ensure!(self.change.iter().all(alone), "--change: restarted and none go with no other");
        Ok(first.replicas())
    }

    fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
}

/// Merge the JSON lines of several races into one table
#[derive(Args, Clone, Debug)]
pub struct Merge {
    /// Files with what races have printed
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Prints what several races found together.
pub fn merge(options: &Merge) -> Result<()> {
    let read = |path: &PathBuf| Kept::of_run(&std::fs::read_to_string(path)?).with_context(|| path.display().to_string());
    let runs: Vec<Kept> = options.files.iter().map(read).collect::<Result<_>>()?;
    // Times in UTC, written alike, are in order when their letters are.
    let last = runs.iter().max_by(|one, other| one.at.cmp(&other.at)).context("no runs")?;
    let what: Vec<&str> = runs.iter().map(|run| run.what.as_str()).collect();
    let mut report = Findings::merged(&runs)?.report(&last.benchmark, what.join("; "));
    report.measured_at(&last.at, &last.machine);
    report.print();
    Ok(())
}

/// Runs the race.
pub fn run(options: Options) -> Result<()> {
    seeded(options.seed, async move |bed, seed| {
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
    mark: Mark,
}

impl Race {
    async fn prepare(bed: &'static Bed, options: Options, random_seed: u64) -> Result<Self> {
        let (grace, replicas) = (options.grace(), options.replicas()?);
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
        let replicas = if options.control { None } else { Some(start_probers(&seed, &lanes, &options, replicas).await?) };
        let mark = seed.plane().mark();
        Ok(Self { options, random_seed, seed, lanes, replicas, load, mark })
    }

    async fn run(mut self) -> Result<()> {
        let Options { trials, lanes, seed: _, grace, load, control, change } = self.options.clone();
        let mut findings = match change.as_slice() {
            [] | [Change::None] => self.side_by_side().await?,
            changes => self.rounds(changes).await?,
        };
        findings.wrong_writes += self.writes_to_load()?;
        let name = match (change.as_slice(), load) {
            _ if control => CONTROL,
            ([], 0) => "race",
            ([], _) => "race-load",
            ([Change::None], _) => "race-two-replicas",
            _ => "race-changes",
        };
        let seed = self.random_seed;
        let mut what = format!("{trials} outages in {lanes} shoots side by side, grace {grace} s, seed {seed}");
        for change in &change {
            what.push_str(&format!(", {}", change.words()));
        }
        if load > 0 {
            what.push_str(&format!(", {load} healthy shoots of {NODES_OF_LOAD} nodes probed beside them"));
        }
        let mut report = findings.report(name, what);
        if let Some(light) = &mut self.load {
            let probes = light.look().await?.counts.probes;
            report.add("load_probes", "probes of the healthy shoots in the meantime", probes as f64, "", None);
        }
        report.print();
        Ok(())
    }

    /// Writes to shoots that are none of the lanes; there is nothing to be written there.
    fn writes_to_load(&self) -> Result<usize> {
        let writes = writes(&self.seed.plane().asked(&self.mark))?;
        Ok(writes.iter().filter(|write| !is_lane(&write.namespace)).count())
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
                match timeout(TRIAL, race.trial(&mut lane, number)).await.map_err(anyhow::Error::from).flatten() {
                    Ok(trial) => trials.push(trial),
                    // A lane in an unknown state races no more; what it did not race shows in the count.
                    Err(error) => {
                        progress(format!("trial {number} came to nothing: {error:#}\n{}", lane.story()));
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
        let Outage { trial, .. } = lane.outage(number, delay, !self.options.control, &mut random).await?;
        tell(&trial, lane, self.replicas.is_some());
        Ok(trial)
    }

    /// A random part of so many of the kubelets' beats.
    fn random_span(&self, beats: u32, random: &mut StdRng) -> Duration {
        (Duration::from_secs(self.options.grace) / 4 * beats).mul_f64(random.random())
    }

    /// In each round a quarter of the lanes stays healthy and the others have an outage; something happens to the leader at a moment
    /// that is a random one in each outage. It is mended when all is restored, or should be.
    async fn rounds(&mut self, changes: &[Change]) -> Result<Findings> {
        let mut findings = Findings { wanted: self.options.trials as usize, ..Findings::default() };
        for (round, change) in (1..).zip(changes.iter().cycle()) {
            let missing = findings.wanted - findings.trials.len();
            if missing == 0 {
                break;
            }
            let ran = timeout(TRIAL, self.round(round, *change, missing, &mut findings)).await;
            if let Err(error) = ran.map_err(anyhow::Error::from).flatten() {
                // Lanes in an unknown state race no more; what they did not race shows in the count.
                progress(format!("round {round} came to nothing: {error:#}"));
                break;
            }
        }
        Ok(findings)
    }

    async fn round(&mut self, round: usize, change: Change, missing: usize, findings: &mut Findings) -> Result<()> {
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
        // Each outage begins at a moment of its own, at most a grace before what happens.
        let moment = self.options.grace();
        let first = findings.trials.len() + 1;
        let delays: Vec<_> = lanes.iter().map(|_| (moment - self.random_span(4, &mut random), random.random())).collect();
        let outages = lanes.iter_mut().zip(&delays).enumerate().map(async |(index, (lane, &(delay, seed)))| {
            let mut random = StdRng::seed_from_u64(seed);
            lane.outage(first + index, delay, false, &mut random).await
        });
        let replicas = self.replicas.as_mut().context("no prober leads")?;
        let happening = async {
            sleep(moment).await;
            progress(format!("round {round}: {}", change.words()));
            replicas.hit(&self.seed, change).await
        };
        let (outages, hit) = tokio::join!(try_join_all(outages), happening);
        let (outages, hit) = (outages?, hit?);
        let (elected, grace) = (replicas.elected(&self.seed, &hit)?, TimeDelta::from_std(self.options.grace())?);
        for (outage, lane) in outages.into_iter().zip(&lanes) {
            let trial = Trial { fault: Some(Fault::of(&hit, elected, &outage, grace)), ..outage.trial };
            tell(&trial, lane, !trial.is_excused());
            findings.trials.push(trial);
        }
        for (lane, mark) in healthy.iter().zip(&marks) {
            let wrong = lane.writes_since(mark)?.len();
            if wrong > 0 {
                progress(format!("a shoot without an outage was written to\n{}", lane.story()));
            }
            findings.wrong_writes += wrong;
        }
        replicas.mend(&self.seed, &hit).await?;
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

/// One prober, or two; the initial delay of the first is over.
async fn start_probers(seed: &Seed, lanes: &[Lane], options: &Options, count: usize) -> Result<Replicas> {
    let config = if options.grace < GRACE_S { ProberConfig::default() } else { ProberConfig::gardener() };
    let shoots: Vec<_> = lanes.iter().map(Lane::shoot).collect();
    let mut replicas = Replicas::create(seed, &shoots, &config, count).await?;
    replicas.start(seed, 1).await?;
    progress("waiting until the prober's initial delay is over");
    try_join_all(lanes.iter().map(Lane::is_watched)).await?;
    replicas.start(seed, count).await?;
    Ok(replicas)
}

/// Healthy shoots of the usual size, on the same seed.
async fn start_load(seed: &Seed, shoots: usize) -> Result<LightShoots> {
    progress(format!("filling the seed with {shoots} healthy shoots"));
    let light = LightShoots::start(Plan::healthy(shoots, NODES_OF_LOAD)).await?;
    fill(seed.api(), &light, &Filling { shoots, foreign_secrets: 0, pods_take: None }).await?;
    Ok(light)
}

/// 3 to 100 nodes; as many shoots have 3 to 10 as have 30 to 100.
fn nodes(random: &mut StdRng) -> usize {
    (3.0 * (100.0_f64 / 3.0).powf(random.random())).round() as usize
}

/// Tells how a trial went, and where it should have been won the whole story if it was not.
fn tell(trial: &Trial, lane: &Lane, should_win: bool) {
    progress(trial.account());
    if trial.restored.is_none() || (should_win && trial.ending() == Ending::Lost) {
        progress(lane.story());
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn replicas(words: &[&str]) -> Option<usize> {
        let line = Line::try_parse_from([&["race"], words].concat()).ok()?;
        line.options.replicas().ok()
    }

    #[test]
    fn what_happens_to_the_leader_says_how_many_replicas_there_are() {
        assert_eq!([replicas(&[]), replicas(&["--change=none"]), replicas(&["--change=restarted"])], [Some(1), Some(2), Some(1)]);
        assert_eq!(replicas(&["--change=killed,terminated,stopped,shoots-cut,seed-cut"]), Some(2));
        assert_eq!([replicas(&["--change=killed,none"]), replicas(&["--change=both"])], [None, None]);
        assert_eq!([replicas(&["--change=killed", "--load=3"]), replicas(&["--change=killed", "--control"])], [None, None]);
    }
}
