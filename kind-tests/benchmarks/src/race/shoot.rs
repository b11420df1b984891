//! One shoot of the race, with a real API server and a real kube-controller-manager of its own,
//! that goes through one outage after another.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::{TimeDelta, Utc};
use futures::future::try_join_all;
use rand::{RngExt, random};
use serde_json::json;
use testbed::followed::{Followed, unknown_nodes};
use testbed::gardener::{KCM, node};
use testbed::objects::items;
use testbed::seed::READY_AFTER;
use testbed::{
    DeploymentPod, SeedCluster, ShootCluster, ShootPlan, Testbed, WebService, eventually,
    kube_controller_manager,
};
use tokio::time::{Instant, sleep};

use super::Trial;
use crate::fleet::fill::DEPENDENTS;
use crate::outage::{Course, writes};

/// Time between kube-controller-manager's checks of the nodes (its --node-monitor-period). It sees a
/// renewal up to so much later, and gives a node up so much later again.
const MONITOR_PERIOD: TimeDelta = TimeDelta::seconds(5);
/// Delay of a renewal on a busy machine.
const LATE: Duration = Duration::from_secs(1);
/// A node that is not ready, and that no Machine backs. kube-controller-manager taints it in its
/// first round; that shows that it watches the nodes.
const SENTINEL: &str = "sentinel";

/// A shoot in which outages are raced.
pub struct RaceShoot {
    pub shoot: ShootCluster,
    pub grace: Duration,
    ever_unknown: Followed<BTreeSet<String>>,
    manager: DeploymentPod,
    service: WebService,
}

impl RaceShoot {
    /// Starts it, without nodes yet.
    pub async fn start(
        bed: &'static Testbed,
        seed: &Arc<SeedCluster>,
        lane: usize,
        grace: Duration,
    ) -> Result<Self> {
        let name = format!("lane-{lane}");
        let shoot = ShootCluster::create(bed, seed, &name, plan(grace)).await?;
        let (programs, api) = (bed.programs().await?, shoot.plane.api());
        let manager = kube_controller_manager(&programs, shoot.plane.admin_kubeconfig(), grace)?;
        Ok(Self {
            ever_unknown: unknown_nodes(api),
            manager: DeploymentPod::start(&shoot, KCM, vec![manager]),
            service: WebService::create(api).await?,
            shoot,
            grace,
        })
    }

    /// Lets the shoot have some nodes and waits until all is as in quiet times.
    pub async fn prepare(&mut self) -> Result<()> {
        let shoot = &mut self.shoot;
        // 3 to 100; as many shoots have 3 to 10 as have 30 to 100.
        let nodes = (3.0 * (100.0_f64 / 3.0).powf(random())).round() as usize;
        let beat = shoot.nodes.beat();
        shoot.set_nodes(nodes, || beat.mul_f64(random())).await?;
        for name in DEPENDENTS {
            let takes_ms = rand::rng().random_range(1000..=2000).to_string();
            shoot.annotate(name, READY_AFTER, Some(&takes_ms)).await?;
        }
        self.as_before().await?;
        self.manager_is_at_work().await?;
        self.service.run_on(self.shoot.nodes.names()).await?;
        are_fresh(&self.shoot).await
    }

    /// Waits until every Deployment is as it was before anything happened.
    async fn as_before(&self) -> Result<()> {
        eventually("all as before", async || {
            let states = self.shoot.states();
            let is_as_before = states
                .values()
                .all(|state| state.is_free_at(1) && state.ready == 1);
            ensure!(is_as_before, "{states:?}");
            Ok(())
        })
        .await
    }

    /// Waits until kube-controller-manager is seen at work.
    async fn manager_is_at_work(&self) -> Result<()> {
        let api = self.shoot.plane.api();
        let path = format!("/api/v1/nodes/{SENTINEL}");
        let mut sentinel = node(SENTINEL, "pool");
        sentinel["status"]["conditions"] =
            json!([{"type": "Ready", "status": "False", "lastHeartbeatTime": Utc::now()}]);
        api.create(&sentinel).await?;
        eventually("a node that is not ready is tainted", async || {
            let taints = api.get(&path).await?["spec"]["taints"].take();
            let is_tainted = items(&taints).any(|taint| taint["effect"] == "NoExecute");
            ensure!(is_tainted, "{taints}");
            Ok(())
        })
        .await?;
        api.delete(&path).await
    }

    /// All nodes lose their way `delay` from now; when the last of them would long be Unknown, they
    /// find it again. Ends when all is restored, or should be.
    pub async fn outage(&self, delay: Duration) -> Result<Trial> {
        sleep(delay).await;
        let (shoot, nodes) = (&self.shoot, &self.shoot.nodes);
        let mark = shoot.seed.plane().mark();
        self.ever_unknown.get().clear();
        *self.manager.ended.lock() = None;
        nodes.cut_all();
        // No renewal lands after this.
        nodes.settled().await;
        let grace = TimeDelta::from_std(self.grace)?;
        let course = Course::of(nodes.stamps().await?, grace)?;
        let over = course.last_end + MONITOR_PERIOD * 2;
        sleep((over - Utc::now()).to_std().unwrap_or_default()).await;

        self.reconnect().await?;
        let is_restored = self.as_before().await.is_ok();
        let mut writes = writes(&shoot.seed, &mark)?;
        writes.retain(|write| write.namespace == shoot.namespace);
        let endpoints = self.service.endpoints();
        Ok(Trial {
            nodes: nodes.names().len(),
            unknown: self.ever_unknown.get().len(),
            course,
            writes,
            killed: None,
            ended: *self.manager.ended.lock(),
            endpoints_lost: endpoints.lost.len(),
            unserved: endpoints.without(Instant::now()).as_secs_f64(),
            is_restored,
        })
    }

    /// The nodes' way is there again: each renews within a beat, and posts its status and its pods'.
    async fn reconnect(&self) -> Result<()> {
        let nodes = &self.shoot.nodes;
        nodes.heal_all();
        let report = |node| nodes.report(node, "Ready", "True", "KubeletReady");
        try_join_all((0..nodes.names().len()).map(report)).await?;
        self.service.report_lost().await
    }
}

/// A shoot without nodes yet.
pub fn plan(grace: Duration) -> ShootPlan {
    ShootPlan {
        nodes: 0,
        grace,
        deployments: DEPENDENTS.map(|name| (name, 1)).into(),
        ..ShootPlan::default()
    }
}

/// Waits until every node has renewed within a beat.
pub async fn are_fresh(shoot: &ShootCluster) -> Result<()> {
    shoot.leases_younger_than(shoot.nodes.beat() + LATE).await
}
