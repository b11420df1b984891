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
//! leases, the writes from the seed's audit log, lost nodes and endpoints from watches on the shoot.

pub mod away;
mod shoot;

use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::{DateTime, Utc};
use clap::Args;
use futures::future::{join, try_join_all};
use rand::random;
use testbed::agent::RunningAgent;
use testbed::gardener::KCM;
use testbed::{Testbed, start_prober};
use tokio::time::sleep;

use crate::fleet::fill::DEPENDENTS;
use crate::fleet::{USUAL_GRACE, prober_config};
use crate::outage::{Course, DeploymentWrite, seconds};
use crate::report::{BenchmarkReport, progress};
use shoot::RaceShoot;

/// Shoots that have outages side by side.
const LANES: usize = 16;

/// Race a real kube-controller-manager, outage after outage
#[derive(Args)]
pub struct RaceOptions {
    /// Outages to race
    #[arg(long, default_value_t = 100)]
    trials: usize,
    /// Probers; none shows what is lost without one
    #[arg(long, default_value_t = 2)]
    replicas: usize,
    /// Kill the leader at a random moment of each outage, and start another prober after it
    #[arg(long)]
    kill: bool,
    /// Seconds after which a node is marked Unknown; with fewer than 40 the prober probes more
    /// often than in production
    #[arg(long, default_value_t = USUAL_GRACE)]
    grace: u32,
}

/// One outage of one shoot.
pub struct Trial {
    /// Nodes of the shoot.
    nodes: usize,
    /// Nodes that were ever Unknown.
    unknown: usize,
    course: Course,
    /// The prober's writes to the shoot's Deployments.
    writes: Vec<DeploymentWrite>,
    /// The moment at which the leader was killed.
    killed: Option<DateTime<Utc>>,
    /// The end of kube-controller-manager's process.
    ended: Option<DateTime<Utc>>,
    /// Endpoints of a Service with a pod on each node that were ever not ready.
    endpoints_lost: usize,
    /// Seconds for which that Service had no ready endpoint.
    unserved: f64,
    /// Says that all came to be as before.
    is_restored: bool,
}

impl Trial {
    fn first_write(&self) -> Option<f64> {
        Some(seconds(self.course.verdict, self.writes.first()?.answered))
    }

    fn kcm_written(&self) -> Option<DateTime<Utc>> {
        let kcm = self.writes.iter().find(|write| write.name == KCM);
        Some(kcm?.answered)
    }

    /// Seconds from the kill, or the verdict, if that was later, to the answer of the next write, no
    /// later than kube-controller-manager's.
    fn after_kill(&self) -> Option<f64> {
        let (killed, last) = (self.killed?, self.kcm_written()?);
        let mut writes = self.writes.iter().map(|write| write.answered);
        let next = writes.find(|answered| (killed..=last).contains(answered))?;
        Some(seconds(killed.max(self.course.verdict), next))
    }

    /// Writes beyond one down and one up for each Deployment.
    fn not_due(&self) -> usize {
        self.writes.len().saturating_sub(2 * DEPENDENTS.len())
    }
}

/// Runs the race.
pub async fn run(bed: &'static Testbed, options: RaceOptions) -> Result<()> {
    let has_successor = options.replicas > 1;
    ensure!(!options.kill || has_successor, "nobody would follow");
    let seed = bed.own_seed().await?;
    let grace = Duration::from_secs(options.grace.into());
    let lanes = LANES.min(options.trials);
    progress(format!("starting {lanes} API servers"));
    let shoots = (0..lanes).map(|lane| RaceShoot::start(bed, &seed, lane, grace));
    let mut shoots = try_join_all(shoots).await?;
    try_join_all(shoots.iter_mut().map(RaceShoot::prepare)).await?;
    let start = async || start_prober(&seed, prober_config(options.grace)).await;
    let mut probers = Vec::new();
    while probers.len() < options.replicas {
        probers.push(start().await?);
        progress("waiting until the initial delay is over");
        // The second probe is the first after it, if there is nobody else; the first prober leads.
        try_join_all(shoots.iter().map(|shoot| shoot.shoot.after_probes(1))).await?;
    }

    let mut trials = Vec::new();
    while trials.len() < options.trials {
        let count = shoots.len().min(options.trials - trials.len());
        let round = round(&mut shoots[..count], &mut probers, options.kill).await;
        // Shoots in an unknown state race no more; what they did not race shows in the count.
        match round {
            Ok(raced) => trials.extend(raced),
            Err(error) => {
                progress(format!("a round came to nothing: {error:#}"));
                break;
            }
        }
        if options.kill {
            probers.push(start().await?);
        }
    }
    report(&options, &trials);
    Ok(())
}

/// All shoots have an outage, each at a moment of its own; `kill` kills the leader, who is the first
/// prober, at a moment that is a random one in each.
async fn round(
    shoots: &mut [RaceShoot],
    probers: &mut Vec<RunningAgent>,
    kill: bool,
) -> Result<Vec<Trial>> {
    try_join_all(shoots.iter_mut().map(RaceShoot::prepare)).await?;
    let grace = shoots[0].grace;
    let outages = shoots
        .iter()
        .map(|shoot| shoot.outage(grace.mul_f64(random())));
    let killed = async {
        if !kill {
            return None;
        }
        sleep(grace).await;
        // What is dropped is killed.
        drop(probers.remove(0));
        Some(Utc::now())
    };
    let (trials, killed) = join(try_join_all(outages), killed).await;
    let mut trials = trials?;
    for (shoot, trial) in shoots.iter().zip(&mut trials) {
        trial.killed = killed;
        let first_write = trial.first_write();
        progress(format!(
            "{} of {} nodes Unknown, first write after {first_write:?} s",
            trial.unknown, trial.nodes
        ));
        if trial.unknown > 0 || !trial.is_restored {
            progress(shoot.shoot.story());
        }
    }
    Ok(trials)
}

fn report(options: &RaceOptions, trials: &[Trial]) {
    let RaceOptions {
        trials: wanted,
        replicas,
        kill,
        grace,
    } = options;
    let mut report = BenchmarkReport::default();
    let sum = |of: fn(&Trial) -> usize| trials.iter().map(of).sum::<usize>() as f64;
    let times = |of: fn(&Trial) -> Option<f64>| trials.iter().filter_map(of);
    let raced = trials.len() as f64;
    report.at_least("outages raced", raced, *wanted as f64);
    let won = sum(|trial| usize::from(trial.unknown == 0));
    if *replicas > 0 {
        report.at_least("won: no node ever Unknown", won, raced);
    } else {
        // Without a prober every outage is lost.
        report.at_most("won: no node ever Unknown", won, 0.0);
    }
    report.add("nodes cut off", sum(|trial| trial.nodes));
    report.add("nodes ever Unknown", sum(|trial| trial.unknown));
    let lost = sum(|trial| trial.endpoints_lost);
    report.add("endpoints ever not ready", lost);
    let unserved = times(|trial| Some(trial.unserved));
    report.times("Service without a ready endpoint, s", unserved, None);
    let restored = sum(|trial| usize::from(trial.is_restored));
    report.at_least("all restored", restored, raced);
    let early = times(Trial::first_write).filter(|late| *late < 0.0);
    report.at_most("writes before the verdict", early.count() as f64, 0.0);
    report.at_most("writes that were not due", sum(Trial::not_due), 0.0);
    let first_writes = times(Trial::first_write);
    let prompt = (!kill).then_some(0.5);
    report.times("verdict to first write, s", first_writes, prompt);
    let kcm_writes = times(|trial| Some(seconds(trial.course.verdict, trial.kcm_written()?)));
    let kcm_write = "verdict to kube-controller-manager's write, s";
    report.times(kcm_write, kcm_writes, None);
    let ends = times(|trial| Some(seconds(trial.kcm_written()?, trial.ended?)));
    report.times("from that to the end of its process, s", ends, None);
    let left = times(|trial| Some(seconds(trial.ended?, trial.course.first_end)));
    if let Some(least) = left.reduce(f64::min) {
        report.add("left over when the process had ended, least, s", least);
    }
    let after_kill = "next write after the kill or the verdict, whichever was later, s";
    report.times(after_kill, times(Trial::after_kill), None);
    let lanes = LANES.min(*wanted);
    let killed = if *kill { ", the leader killed" } else { "" };
    report.print(&format!(
        "outages in {lanes} shoots side by side, grace {grace} s, probers: {replicas}{killed}"
    ));
}
