//! The race: a real kube-controller-manager that marks nodes Unknown 40 s after their last renewal,
//! against the prober that has to stop it before that, outage after outage.
//!
//! ```text
//!  shoot 1: kubelets --renew--> shoot's API server <--watches, marks Unknown-- kube-controller-manager  (all real
//!  shoot 2:  cut, reconnected            ^           takes endpoints away        ^ SIGTERM               but the kubelets)
//!  ...                                   | probes                                | Deployment at 0
//!                             dependency-watchdog --------writes--------> seed's API server --audit log--> when
//! ```
//!
//! What counts is taken from what was really written: the verdict's instant from the stamps on the
//! leases, the writes and who made them from the seed's audit log, lost nodes and endpoints from
//! watches on the shoot.

pub mod away;
pub mod leader_fault;
mod observer;
mod replicas;
mod shoot;
pub mod summary;
pub mod trial;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::TimeDelta;
use clap::{Args, Parser};
use futures::future::{join_all, try_join_all};
use rand::RngExt;
use testbed::{ProberConfig, SeedCluster, ShootCluster, Testbed, with_bed};
use tokio::time::sleep;

use crate::fleet::fill::fill_seed;
use crate::fleet::synthetic::{FleetPlan, USUAL_GRACE};
use crate::report::{BenchmarkReport, progress};
use crate::writes::writes;
use leader_fault::LeaderFault;
use replicas::ProberReplicas;
use shoot::RaceShoot;
use summary::{CONTROL, RaceFindings};
use trial::{Ending, FaultOutcome, Trial};

/// Kubernetes' default nodeMonitorGracePeriod, with which Gardener's own configuration is taken.
const GRACE: Duration = Duration::from_secs(40);
/// Nodes of each healthy shoot, as many as the Go original was measured with.
const NODES_OF_LOAD: usize = 100;

/// Race a real kube-controller-manager, outage after outage
#[derive(Parser, Clone, Debug)]
pub struct RaceOptions {
    /// Outages to race
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,
    /// Shoots that have outages side by side
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    lanes: u32,
    /// Where the random numbers begin; drawn when absent
    #[arg(long)]
    seed: Option<u64>,
    /// Seconds after which a node is marked Unknown; with fewer than 40 the prober probes more
    /// often than in production
    #[arg(long, default_value_t = GRACE.as_secs(), value_parser = clap::value_parser!(u64).range(4..))]
    grace: u64,
    /// Healthy shoots of 100 nodes that the same prober probes
    #[arg(long, default_value_t = 0, conflicts_with = "change")]
    load: usize,
    /// Race with no prober at all, to see what is lost without one
    #[arg(long, conflicts_with_all = ["change", "load"])]
    control: bool,
    /// What happens to the leader at a random moment of an outage, while a quarter of the shoots
    /// stays healthy; several take turns
    #[arg(long, value_enum, value_delimiter = ',')]
    change: Vec<LeaderFault>,
}

impl RaceOptions {
    /// How many replicas there are.
    fn replicas(&self) -> Result<usize> {
        let Some(first) = self.change.first() else {
            return Ok(usize::from(!self.control));
        };
        let alone = |change: &LeaderFault| {
            self.change.len() == 1 || !matches!(change, LeaderFault::Restarted | LeaderFault::None)
        };
        ensure!(
            self.change.iter().all(alone),
            "--change: restarted and none go with no other"
        );
        Ok(if *first == LeaderFault::Restarted {
            1
        } else {
            2
        })
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
    let read = |path: &PathBuf| {
        BenchmarkReport::of_run(&std::fs::read_to_string(path)?)
            .with_context(|| path.display().to_string())
    };
    let runs: Vec<BenchmarkReport> = options.files.iter().map(read).collect::<Result<_>>()?;
    // Times in UTC, written alike, are in order when their letters are.
    let last = runs.iter().max_by_key(|run| &run.at).context("no runs")?;
    let what: Vec<&str> = runs.iter().map(|run| run.what.as_str()).collect();
    let mut report = RaceFindings::merged(&runs)?.report(&last.benchmark, what.join("; "));
    (report.at, report.machine) = (last.at.clone(), last.machine.clone());
    report.print()
}

/// Runs a benchmark with random numbers from this seed, or from one that is drawn, on control
/// planes of its own.
fn seeded<F>(seed: Option<u64>, benchmark: impl FnOnce(&'static Testbed, u64) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let seed = seed.unwrap_or_else(|| rand::rng().random());
    progress(format!("seed {seed}: repeat with --seed {seed}"));
    with_bed(async move |bed| {
        ensure!(
            !bed.is_given(),
            "control planes of its own are needed: unset SEED_KUBECONFIG and SHOOT_KUBECONFIG"
        );
        benchmark(bed, seed).await
    })
}

/// Runs the race.
pub fn run(options: RaceOptions) -> Result<()> {
    let replicas = options.replicas()?;
    seeded(options.seed, async move |bed, random_seed| {
        let RaceOptions {
            trials,
            lanes,
            grace,
            load,
            control,
            ref change,
            ..
        } = options;
        let (grace_s, grace) = (grace, Duration::from_secs(grace));
        let seed = bed.own_seed().await?;
        let shoots = start_shoots(bed, &seed, lanes, grace, random_seed).await?;
        let plan = FleetPlan {
            shoots: load,
            nodes: NODES_OF_LOAD,
            grace: USUAL_GRACE,
        };
        let load_shoots = match load {
            0 => None,
            _ => Some(fill_seed(seed.api(), plan, 0, None).await?),
        };
        let config = if grace < GRACE {
            ProberConfig::default()
        } else {
            ProberConfig::gardener()
        };
        let mut race = Race {
            replicas: start_probers(&seed, &shoots, &config, replicas).await?,
            shoots,
            findings: RaceFindings {
                wanted: trials as usize,
                ..RaceFindings::default()
            },
        };
        let mark = seed.plane().mark();
        match change.as_slice() {
            [] | [LeaderFault::None] => race.side_by_side(!control).await,
            faults => race.rounds(faults).await,
        }
        let writes = writes(&seed.plane().asked(&mark))?;
        // There is nothing to be written to shoots that do not race.
        let wrong = writes
            .iter()
            .filter(|write| !write.namespace.starts_with(shoot::NAMESPACE));
        race.findings.wrong_writes += wrong.count();
        let mut what = format!(
            "{trials} outages in {lanes} shoots side by side, grace {grace_s} s, seed {random_seed}"
        );
        for fault in change {
            what += &format!(", {}", fault.words());
        }
        if load > 0 {
            what += &format!(", {load} healthy shoots of {NODES_OF_LOAD} nodes probed beside them");
        }
        let name = if control { CONTROL } else { "race" };
        let mut report = race.findings.report(name, what);
        if let Some(shoots) = load_shoots {
            report.add([("load_probes", shoots.probes().iter().sum::<u64>() as f64)]);
        }
        report.print()
    })
}

/// The shoots that race, each with some nodes and all as in quiet times.
async fn start_shoots(
    bed: &'static Testbed,
    seed: &Arc<SeedCluster>,
    count: u32,
    grace: Duration,
    random_seed: u64,
) -> Result<Vec<RaceShoot>> {
    let programs = bed.programs().await?;
    progress(format!("starting {count} API servers"));
    let mut shoots = try_join_all((1..=count).map(async |number| {
        let name = format!("{}{number}", shoot::NAME);
        let shoot = ShootCluster::create(bed, seed, &name, shoot::plan(grace)).await?;
        RaceShoot::new(number, shoot, &programs, grace, random_seed).await
    }))
    .await?;
    try_join_all(shoots.iter_mut().map(RaceShoot::prepare)).await?;
    Ok(shoots)
}

/// So many probers; the initial delay of the first is over.
async fn start_probers(
    seed: &Arc<SeedCluster>,
    shoots: &[RaceShoot],
    config: &ProberConfig,
    count: usize,
) -> Result<ProberReplicas> {
    let shoots: Vec<&ShootCluster> = shoots.iter().map(|raced| &raced.shoot).collect();
    let mut replicas = ProberReplicas::create(seed, &shoots, config, count).await?;
    if count > 0 {
        replicas.start(1).await?;
        progress("waiting until the prober's initial delay is over");
        // The second probe is the first after it.
        try_join_all(shoots.iter().map(|shoot| shoot.after_probes(1))).await?;
        replicas.start(count).await?;
    }
    Ok(replicas)
}

struct Race {
    shoots: Vec<RaceShoot>,
    replicas: ProberReplicas,
    findings: RaceFindings,
}

impl Race {
    /// Every shoot goes from outage to outage, independent of the others.
    async fn side_by_side(&mut self, is_protected: bool) {
        let (count, wanted) = (self.shoots.len(), self.findings.wanted);
        let ran = join_all(self.shoots.iter_mut().zip(1..).map(async |(raced, first)| {
            let mut trials = Vec::new();
            for number in (first..=wanted).step_by(count) {
                match raced.trial(number, is_protected).await {
                    Ok(trial) => trials.push(tell(trial, raced, is_protected)),
                    // A shoot in an unknown state races no more; what it did not race shows in the
                    // count.
                    Err(error) => {
                        let story = raced.shoot.story();
                        progress(format!(
                            "trial {number} came to nothing: {error:#}\n{story}"
                        ));
                        break;
                    }
                }
            }
            trials
        }));
        self.findings.trials = ran.await.concat();
        self.findings.trials.sort_by_key(|trial| trial.number);
    }

    /// In each round a quarter of the shoots stays healthy and the others have an outage; something
    /// happens to the leader at a moment that is a random one in each outage. It is mended when all
    /// is restored, or should be.
    async fn rounds(&mut self, faults: &[LeaderFault]) {
        for (number, fault) in (1..).zip(faults.iter().cycle()) {
            if self.findings.trials.len() == self.findings.wanted {
                break;
            }
            progress(format!("round {number}: {}", fault.words()));
            if let Err(error) = self.round(*fault).await {
                // Shoots in an unknown state race no more; what they did not race shows in the
                // count.
                progress(format!("round {number} came to nothing: {error:#}"));
                break;
            }
        }
    }

    async fn round(&mut self, fault: LeaderFault) -> Result<()> {
        let Self {
            shoots,
            replicas,
            findings,
        } = self;
        try_join_all(shoots.iter_mut().map(RaceShoot::prepare)).await?;
        let (all, grace) = (shoots.len(), shoots[0].grace);
        let by = shoots[0].random.random_range(0..all);
        shoots.rotate_left(by);
        sleep(shoots[0].part_of(2)).await;
        let count =
            (all - all.div_ceil(4).min(all - 1)).min(findings.wanted - findings.trials.len());
        let (shoots, healthy) = shoots.split_at_mut(count);
        let mark = shoots[0].shoot.seed.plane().mark();
        let numbered = shoots.iter_mut().zip(findings.trials.len() + 1..);
        let outages = numbered.map(async |(raced, number)| {
            // Each outage begins at a moment of its own, at most a grace before what happens.
            let delay = grace - raced.part_of(4);
            raced.outage(number, delay, false).await
        });
        let happening = async {
            sleep(grace).await;
            replicas.hit(fault).await
        };
        let (outages, hit) = tokio::try_join!(try_join_all(outages), happening)?;
        let (elected, grace) = (replicas.elected(&hit)?, TimeDelta::from_std(grace)?);
        for (outage, raced) in outages.into_iter().zip(shoots) {
            let trial = Trial {
                fault: Some(FaultOutcome::of(&hit, elected, &outage, grace)),
                ..outage.trial
            };
            findings.trials.push(tell(trial, raced, true));
        }
        for raced in healthy {
            let wrong = raced.writes_since(&mark)?.len();
            if wrong > 0 {
                let story = raced.shoot.story();
                progress(format!("a shoot without an outage was written to\n{story}"));
            }
            findings.wrong_writes += wrong;
        }
        replicas.mend(&hit).await
    }
}

/// Tells how a trial went, and where it should have been won the whole story if it was not.
fn tell(trial: Trial, raced: &RaceShoot, is_protected: bool) -> Trial {
    progress(trial.account());
    let is_lost = is_protected && !trial.is_excused() && trial.ending() == Ending::Lost;
    if trial.restored.is_none() || is_lost {
        progress(raced.shoot.story());
    }
    trial
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicas(words: &[&str]) -> Option<usize> {
        RaceOptions::try_parse_from([&["race"], words].concat())
            .ok()?
            .replicas()
            .ok()
    }

    #[test]
    fn what_happens_to_the_leader_says_how_many_replicas_there_are() {
        assert_eq!(
            [
                replicas(&[]),
                replicas(&["--change=none"]),
                replicas(&["--change=restarted"])
            ],
            [Some(1), Some(2), Some(1)]
        );
        assert_eq!(
            replicas(&["--change=killed,terminated,stopped,shoots-cut,seed-cut"]),
            Some(2)
        );
        assert_eq!(
            [
                replicas(&["--change=killed,none"]),
                replicas(&["--change=both"])
            ],
            [None, None]
        );
        assert_eq!(
            [
                replicas(&["--change=killed", "--load=3"]),
                replicas(&["--change=killed", "--control"])
            ],
            [None, None]
        );
    }
}
