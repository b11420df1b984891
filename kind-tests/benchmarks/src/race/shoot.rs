//! One shoot of the race, with a real API server and a real kube-controller-manager of its own,
//! that goes through one outage after another.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use futures::future::try_join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use testbed::audit::Mark;
use testbed::seed::READY_AFTER;
use testbed::shoot::CA;
use testbed::{ShootCluster, ShootPlan, WebService, eventually};
use tokio::time::{Instant, sleep};

use super::observer::RaceObserver;
use super::trial::{RacedOutage, Trial};
use crate::course::{Course, seconds, turns_up};
use crate::fleet::fill::DEPENDENTS;
use crate::writes::{DeploymentWrite, writes};

/// How often kube-controller-manager checks the nodes (its --node-monitor-period). It sees a
/// renewal up to so much later, and gives a node up so much later again.
const MONITOR_PERIOD: TimeDelta = TimeDelta::seconds(5);
/// How long a pod takes to go, and to come, in milliseconds.
const POD_TAKES_MS: std::ops::RangeInclusive<u64> = 1000..=2000;
/// By how much a renewal may come late on a busy machine.
const LATE: Duration = Duration::from_secs(1);

/// The beginning of the raced shoots' names, and of their namespaces on the seed.
pub const NAME: &str = "lane-";
pub const NAMESPACE: &str = "shoot--bed--lane-";

/// So long before the end of an outage somebody else brings a controller up; what follows is
/// awaited until then.
const RAISED_BEFORE_END: TimeDelta = TimeDelta::seconds(8);

/// A shoot in which outages are raced.
pub struct RaceShoot {
    number: u32,
    pub shoot: ShootCluster,
    observer: RaceObserver,
    service: WebService,
    pub grace: Duration,
    pub random: StdRng,
}

impl RaceShoot {
    /// Of a shoot without nodes. The random numbers follow from its own and `random_seed`.
    pub async fn new(
        number: u32,
        shoot: ShootCluster,
        programs: &Path,
        grace: Duration,
        random_seed: u64,
    ) -> Result<Self> {
        Ok(Self {
            number,
            observer: RaceObserver::of(&shoot, programs, grace)?,
            service: WebService::create(shoot.plane.api()).await?,
            shoot,
            grace,
            random: StdRng::seed_from_u64(random_seed.wrapping_add(number.into())),
        })
    }

    /// A random part of so many of the kubelets' beats.
    pub fn part_of(&mut self, beats: u32) -> Duration {
        (self.grace / 4 * beats).mul_f64(self.random.random())
    }

    /// Lets the shoot have some nodes and waits until all is as in quiet times.
    pub async fn prepare(&mut self) -> Result<()> {
        let Self { shoot, random, .. } = self;
        // 3 to 100; as many shoots have 3 to 10 as have 30 to 100.
        let nodes = (3.0 * (100.0_f64 / 3.0).powf(random.random())).round() as usize;
        let beat = shoot.nodes.beat();
        let phase = || beat.mul_f64(random.random());
        shoot.set_nodes(nodes, phase).await?;
        for name in DEPENDENTS {
            let takes = random.random_range(POD_TAKES_MS).to_string();
            shoot.annotate(name, READY_AFTER, Some(&takes)).await?;
        }
        self.as_before().await?;
        self.observer.at_work().await?;
        self.service.run_on(self.shoot.nodes.names()).await?;
        are_fresh(&self.shoot).await
    }

    /// Waits until every Deployment is as it was before anything happened.
    async fn as_before(&self) -> Result<()> {
        eventually("all as before", async || {
            let states = self.shoot.states();
            let is_as_before = |name: &str| {
                let state = states.get(name);
                state.is_some_and(|state| state.is_free_at(1) && state.ready == 1)
            };
            ensure!(DEPENDENTS.into_iter().all(is_as_before), "{states:?}");
            Ok(())
        })
        .await
    }

    /// The successful writes of probers to this shoot's Deployments since then, in order.
    pub fn writes_since(&self, mark: &Mark) -> Result<Vec<DeploymentWrite>> {
        let mut writes = writes(&self.shoot.seed.plane().asked(mark))?;
        writes.retain(|write| write.namespace == self.shoot.namespace);
        Ok(writes)
    }

    /// All nodes lose their way `delay` from now; when the last of them would long be Unknown, they
    /// find it again. Ends when all is restored, or should be. Before it ends somebody brings
    /// cluster-autoscaler up, if that is wanted.
    pub async fn outage(
        &mut self,
        number: usize,
        delay: Duration,
        raise: bool,
    ) -> Result<RacedOutage> {
        sleep(delay).await;
        let mark = self.shoot.seed.plane().mark();
        self.observer.begin();
        self.shoot.nodes.cut_all();
        // No renewal lands after this.
        self.shoot.nodes.settled().await;
        let cut = Utc::now();
        let stamps = self.shoot.nodes.stamps().await?;
        let grace = TimeDelta::from_std(self.grace)?;
        let course = Course::of(&stamps, grace).context("fewer than two nodes")?;
        let over = course.last_end + MONITOR_PERIOD * 2;
        let raised = self.raise(over - RAISED_BEFORE_END, raise).await?;
        sleep_until(over).await;

        let reconnected = Utc::now();
        let turns = turns_up(&self.reconnect().await?).context("no nodes")?;
        let restored = self.as_before().await;
        let restored = restored.map(|()| seconds(reconnected, Utc::now()));
        let mut writes = self.writes_since(&mark)?;
        let next_after = |moment| {
            let mut answers = writes.iter().map(|write| write.answered);
            answers.find(|answered| *answered > moment)
        };
        let lowered = raised.and_then(|raised| Some(seconds(raised, next_after(raised)?)));
        let recovered = next_after(reconnected).map(|answered| seconds(turns, answered));
        let due = 2 * DEPENDENTS.len() + usize::from(raised.is_some());
        let trial = Trial {
            number,
            lane: self.number as usize,
            nodes: stamps.len(),
            lowered,
            recovered,
            restored: restored.ok(),
            superfluous: writes.len().saturating_sub(due),
            without_lead: writes.iter().filter(|write| !write.by.leads).count(),
            ..self.protection(course)
        };
        writes.retain(|write| write.answered <= raised.unwrap_or(reconnected));
        Ok(RacedOutage::new(trial, cut, course, writes))
    }

    /// What became of the nodes, and of their Service.
    fn protection(&self, course: Course) -> Trial {
        let (ended, endpoints) = (self.observer.end(), self.service.endpoints());
        Trial {
            kcm_exit: ended.map(|(_, took)| took.as_secs_f64()),
            left: ended.map(|(end, _)| seconds(end, course.first_end)),
            unknown: self.observer.unknown(),
            endpoints_lost: Some(endpoints.lost.len()),
            unserved: Some(endpoints.without(Instant::now()).as_secs_f64()),
            ..Trial::default()
        }
    }

    /// The nodes' way is there again: each renews within a beat, from now on at a new phase, and
    /// posts its status and its pods'. Returns when each renews first, in order.
    async fn reconnect(&mut self) -> Result<Vec<DateTime<Utc>>> {
        let (reconnected, nodes) = (Utc::now(), &self.shoot.nodes);
        let names = nodes.names().iter();
        let mut phases: Vec<Duration> = names
            .map(|_| nodes.beat().mul_f64(self.random.random()))
            .collect();
        nodes.heal_at(&phases);
        let report = |node| nodes.report(node, "Ready", "True", "KubeletReady");
        try_join_all((0..phases.len()).map(report)).await?;
        self.service.report_lost().await?;
        phases.sort_unstable();
        Ok(phases.iter().map(|phase| reconnected + *phase).collect())
    }

    /// At this moment somebody brings cluster-autoscaler up, if that is wanted and all are at 0 by
    /// then. Returns when.
    async fn raise(&self, at: DateTime<Utc>, wanted: bool) -> Result<Option<DateTime<Utc>>> {
        if wanted {
            sleep_until(at).await;
            if self
                .shoot
                .states()
                .values()
                .all(|state| state.replicas == 0)
            {
                let raised = Utc::now();
                self.shoot.scale(CA, 1).await?;
                return Ok(Some(raised));
            }
        }
        Ok(None)
    }
}

async fn sleep_until(moment: DateTime<Utc>) {
    sleep((moment - Utc::now()).to_std().unwrap_or_default()).await;
}

/// A shoot without nodes yet, to which each replica has a way of its own.
pub fn plan(grace: Duration) -> ShootPlan {
    ShootPlan {
        nodes: 0,
        grace,
        deployments: DEPENDENTS.map(|name| (name, 1)).into(),
        secret: false,
        ..ShootPlan::default()
    }
}

/// Waits until every node has renewed within a beat.
pub async fn are_fresh(shoot: &ShootCluster) -> Result<()> {
    shoot.leases_younger_than(shoot.nodes.beat() + LATE).await
}
