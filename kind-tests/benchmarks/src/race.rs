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

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use chrono::TimeDelta;
use clap::Parser;
use futures::future::try_join_all;
use rand::RngExt;
use testbed::{ProberConfig, SeedCluster, ShootCluster, Testbed, with_bed};
use tokio::time::sleep;

use crate::fleet::fill::fill_seed;
use crate::fleet::synthetic::{FleetPlan, USUAL_GRACE};
use crate::report::progress;
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
    /// There is another replica wherever something happens to the leader, but where the only one is
    /// restarted.
    fn replicas(&self) -> usize {
        match self.change.as_slice() {
            [] => usize::from(!self.control),
            [LeaderFault::Restarted] => 1,
            _ => 2,
        }
    }
}

/// Runs a benchmark with random numbers from this seed, or from one that is drawn.
fn seeded<F>(seed: Option<u64>, benchmark: impl FnOnce(&'static Testbed, u64) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let seed = seed.unwrap_or_else(|| rand::rng().random());
    progress(format!("seed {seed}: repeat with --seed {seed}"));
    with_bed(async move |bed| benchmark(bed, seed).await)
}

/// Runs the race.
pub fn run(options: RaceOptions) -> Result<()> {
    seeded(options.seed, async move |bed, random_seed| {
        let replicas = options.replicas();
        let RaceOptions {
            trials,
            lanes,
            grace,
            load,
            control,
            change,
            ..
        } = options;
        let mut what = format!(
            "{trials} outages in {lanes} shoots side by side, grace {grace} s, seed {random_seed}"
        );
        for fault in &change {
            what += &format!(", {}", fault.words());
        }
        if load > 0 {
            what += &format!(", {load} healthy shoots of {NODES_OF_LOAD} nodes probed beside them");
        }
        let (seed, grace) = (bed.own_seed().await?, Duration::from_secs(grace));
        let shoots = start_shoots(bed, &seed, lanes, grace, random_seed).await?;
        let plan = FleetPlan {
            shoots: load,
            nodes: NODES_OF_LOAD,
            grace: USUAL_GRACE,
        };
        let load = match load {
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
        let faults: Vec<_> = match change.as_slice() {
            [] | [LeaderFault::None] => vec![None],
            faults => faults.iter().copied().map(Some).collect(),
        };
        race.rounds(&faults, !control).await;
        // There is nothing to be written to shoots that do not race.
        let mut wrong = writes(&seed.plane().asked(&mark))?;
        wrong.retain(|write| !write.namespace.starts_with(shoot::NAMESPACE));
        race.findings.wrong_writes += wrong.len();
        let name = if control { CONTROL } else { "race" };
        let mut report = race.findings.report(name, what);
        if let Some(shoots) = load {
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
    /// Round after round; with several faults each takes its turn.
    async fn rounds(&mut self, faults: &[Option<LeaderFault>], is_protected: bool) {
        for (number, fault) in (1..).zip(faults.iter().cycle()) {
            if self.findings.trials.len() >= self.findings.wanted {
                break;
            }
            let words = fault.map_or("no fault", LeaderFault::words);
            progress(format!("round {number}: {words}"));
            if let Err(error) = self.round(*fault, is_protected).await {
                // Shoots in an unknown state race no more; what they did not race shows in the
                // count.
                progress(format!("round {number} came to nothing: {error:#}"));
                break;
            }
        }
    }

    /// All shoots have an outage, each at a moment of its own. Where something happens to the leader
    /// a quarter stays healthy, and that comes at a moment that is a random one in each outage; it
    /// is mended when all is restored, or should be. Where nothing does, somebody scales
    /// cluster-autoscaler up.
    async fn round(&mut self, fault: Option<LeaderFault>, is_protected: bool) -> Result<()> {
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
        let healthy = fault.map_or(0, |_| all.div_ceil(4).min(all - 1));
        let count = (all - healthy).min(findings.wanted - findings.trials.len());
        let (shoots, healthy) = shoots.split_at_mut(count);
        let mark = shoots[0].shoot.seed.plane().mark();
        let numbered = shoots.iter_mut().zip(findings.trials.len() + 1..);
        let outages = numbered.map(async |(raced, number)| {
            let delay = match fault {
                Some(_) => grace - raced.part_of(4),
                None => raced.part_of(2),
            };
            let raise = is_protected && fault.is_none();
            raced.outage(number, delay, raise).await
        });
        let happening = async {
            let Some(fault) = fault else { return Ok(None) };
            sleep(grace).await;
            replicas.hit(fault).await.map(Some)
        };
        let (outages, hit) = tokio::try_join!(try_join_all(outages), happening)?;
        let elected = hit.as_ref().map(|hit| replicas.elected(hit)).transpose()?;
        let grace = TimeDelta::from_std(grace)?;
        for (outage, raced) in outages.into_iter().zip(shoots) {
            let fault = hit.as_ref().zip(elected);
            let fault = fault.map(|(hit, elected)| FaultOutcome::of(hit, elected, &outage, grace));
            let trial = Trial {
                fault,
                ..outage.trial
            };
            progress(trial.account());
            let is_lost = is_protected && !trial.is_excused() && trial.ending() == Ending::Lost;
            if trial.restored.is_none() || is_lost {
                progress(raced.shoot.story());
            }
            findings.trials.push(trial);
        }
        for raced in healthy {
            let wrong = raced.writes_since(&mark)?.len();
            if wrong > 0 {
                let story = raced.shoot.story();
                progress(format!("a shoot without an outage was written to\n{story}"));
            }
            findings.wrong_writes += wrong;
        }
        match hit {
            Some(hit) => replicas.mend(&hit).await,
            None => Ok(()),
        }
    }
}
