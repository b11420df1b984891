//! A lane: one shoot on the seed, with a real API server and a real kube-controller-manager of its own, that goes through
//! one outage after another.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use kind_tests::audit::Mark;
use kind_tests::manifests::PROBE;
use kind_tests::seed::READY_AFTER;
use kind_tests::shoot::{CA, KCM, MCM};
use kind_tests::{Bed, Seed, Shoot, ShootPlan, eventually};
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::json;
use tokio::time::sleep;

use super::kubelets::Kubelets;
use super::referee::Referee;
use super::trial::{Course, Trial, seconds};
use super::writes::{Write, writes};

/// How often kube-controller-manager looks at the nodes (its --node-monitor-period). It sees a renewal up to so much later, and
/// gives a node up so much later again.
const MONITOR_PERIOD: TimeDelta = TimeDelta::seconds(5);
/// Gardener's three Deployments.
const DEPLOYMENTS: [&str; 3] = [KCM, MCM, CA];
/// How long a pod takes to go, and to come, in milliseconds.
const POD_TAKES_MS: std::ops::RangeInclusive<u64> = 1000..=2000;
/// All is restored about 60 s after an outage: up to 19 s until the prober looks, 30 s for machine-controller-manager, pods. And 60 s
/// more where a replica restores that does not lead.
const RESTORING: Duration = Duration::from_secs(150);

/// The beginning of the names of lanes, and of their namespaces on the seed.
const LANE: &str = "lane-";
const NAMESPACE: &str = "shoot--bed--lane-";

/// Whether this is the namespace of a lane.
pub fn is_lane(namespace: &str) -> bool {
    namespace.starts_with(NAMESPACE)
}

/// How long it takes until all nodes have renewed: a beat, and more on a busy machine.
const RENEWING: Duration = Duration::from_secs(60);
/// By how much a renewal may come late on a busy machine.
const LATE: TimeDelta = TimeDelta::seconds(1);

/// A shoot in which outages are raced.
pub struct Lane {
    number: usize,
    shoot: Shoot,
    kubelets: Kubelets,
    referee: Referee,
    grace: TimeDelta,
}

/// One outage and the moments in it that are not in its [`Trial`].
pub struct Outage {
    /// What came of it.
    pub trial: Trial,
    /// When it began.
    pub cut: DateTime<Utc>,
    /// When the verdict could first fall, and when nodes ended.
    pub course: Course,
    /// The writes in it, in order.
    pub writes: Vec<Write>,
}

impl Lane {
    /// Makes a shoot without nodes.
    pub async fn create(bed: &'static Bed, seed: &Arc<Seed>, number: usize, grace: Duration, programs: &Path) -> Result<Self> {
        let deployments = DEPLOYMENTS.map(|name| (name, 1)).into();
        let plan = ShootPlan { nodes: 0, grace, deployments, secret: false, ..ShootPlan::default() };
        let shoot = Shoot::create(bed, seed, &format!("{LANE}{number}"), plan).await?;
        let kubelets = Kubelets::new(shoot.plane.api().clone(), seed.api().clone(), &shoot.namespace, grace);
        let referee = Referee::of(&shoot, programs, grace)?;
        Ok(Self { number, shoot, kubelets, referee, grace: TimeDelta::from_std(grace)? })
    }

    /// Where its API server listens.
    pub fn address(&self) -> SocketAddr {
        self.shoot.plane.address()
    }

    /// Writes a Secret for a prober, with a kubeconfig that leads there.
    pub async fn write_secret(&self, name: &str, address: SocketAddr) -> Result<()> {
        let token = self.shoot.plane.api().token("kube-system", PROBE).await?;
        let kubeconfig = STANDARD.encode(self.shoot.kubeconfig(address, &token));
        let metadata = json!({"name": name, "namespace": self.shoot.namespace});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"kubeconfig": kubeconfig}});
        self.shoot.seed.api().create(&format!("/api/v1/namespaces/{}/secrets", self.shoot.namespace), &secret).await
    }

    /// The end of the first probe that may be followed by a write: the second one is the first after the initial delay.
    pub async fn is_watched(&self) -> Result<()> {
        self.shoot.after_probes(1).await
    }

    /// Lets the shoot have so many nodes and waits until all is as in quiet times.
    pub async fn prepare(&mut self, nodes: usize, random: &mut StdRng) -> Result<()> {
        self.kubelets.set_count(nodes, random).await?;
        for name in DEPLOYMENTS {
            let takes = random.random_range(POD_TAKES_MS).to_string();
            self.shoot.annotate(name, READY_AFTER, Some(&takes)).await?;
        }
        self.as_before().await?;
        self.referee.at_work().await?;
        let beat = TimeDelta::from_std(self.kubelets.beat())?;
        eventually("every node has renewed within a beat", RENEWING, async || {
            let oldest = self.kubelets.stamps().await?.into_iter().min().context("no lease")?;
            let age = Utc::now() - oldest;
            ensure!(age <= beat + LATE, "the oldest lease is {age} old");
            Ok(())
        })
        .await
    }

    /// Waits until every Deployment is as it was before anything happened.
    async fn as_before(&self) -> Result<()> {
        eventually("all as before", RESTORING, async || {
            let states = self.referee.deployments();
            for name in DEPLOYMENTS {
                let state = states.get(name).with_context(|| format!("no {name}"))?;
                ensure!(state.is_free_at(1) && state.ready == 1, "{name}: {state}");
            }
            Ok(())
        })
        .await
    }

    /// A place in the seed's audit log; see [`Lane::writes_since`].
    pub fn mark(&self) -> Mark {
        self.shoot.seed.plane().mark()
    }

    /// The successful writes of probers to this shoot's Deployments since then, in order.
    pub fn writes_since(&self, mark: &Mark) -> Result<Vec<Write>> {
        let mut writes = writes(&self.shoot.seed.plane().asked(mark))?;
        writes.retain(|write| write.namespace == self.shoot.namespace);
        Ok(writes)
    }

    /// All nodes lose their way `delay` from now; when the last of them would long be Unknown, they find it again. Ends when
    /// all is restored, or should be.
    pub async fn outage(&mut self, number: usize, delay: Duration, random: &mut StdRng) -> Result<Outage> {
        sleep(delay).await;
        let mark = self.mark();
        self.referee.begin();
        let cut = self.kubelets.cut().await;
        let stamps = self.kubelets.stamps().await?;
        let course = Course::of(&stamps, self.grace).context("fewer than two nodes")?;
        let over = course.last_end + MONITOR_PERIOD * 2;
        sleep((over - Utc::now()).to_std().unwrap_or_default()).await;

        let healed = Utc::now();
        self.kubelets.heal(random).await?;
        let restored = self.as_before().await.map(|()| seconds(healed, Utc::now()));
        let writes = self.writes_since(&mark)?;
        let in_outage: Vec<Write> = writes.iter().filter(|write| write.answered <= healed).cloned().collect();
        let after_verdict = |write: &Write| seconds(course.verdict, write.answered);
        let end = self.referee.end();
        let trial = Trial {
            number,
            lane: self.number,
            nodes: stamps.len(),
            verdict: seconds(cut, course.verdict),
            available: seconds(course.verdict, course.first_end),
            first_write: in_outage.first().map(after_verdict),
            first_by: in_outage.first().map(|write| write.by.clone()),
            kcm_write: in_outage.iter().find(|write| write.name == KCM).map(after_verdict),
            last_write: in_outage.last().map(after_verdict),
            kcm_exit: end.map(|end| end.took.as_secs_f64()),
            left: end.map(|end| seconds(end.at, course.first_end)),
            unknown: self.referee.unknown(),
            restored: restored.ok(),
            superfluous: writes.len().saturating_sub(2 * DEPLOYMENTS.len()),
            without_lead: writes.iter().filter(|write| !write.by.leads).count(),
            fault: None,
        };
        Ok(Outage { trial, cut, course, writes: in_outage })
    }

    /// What happened, for a person who wants to know why a trial was lost.
    pub fn story(&self) -> String {
        self.shoot.story()
    }
}
