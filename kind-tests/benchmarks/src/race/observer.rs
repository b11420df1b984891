//! The other runner: a real kube-controller-manager that marks nodes Unknown, and ends when its
//! Deployment is at 0. And who watches it: whether it is at work, and which nodes it ever marked.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::{DateTime, Utc};
use serde_json::json;
use testbed::control_plane::ControllerManager;
use testbed::followed::{Followed, unknown_nodes};
use testbed::gardener::node;
use testbed::objects::items;
use testbed::shoot::KCM;
use testbed::{DeploymentPod, KubeApi, ShootCluster, eventually};

/// A node that is not ready, and that no Machine backs. kube-controller-manager taints it in its
/// first round; that shows that it watches the nodes.
const SENTINEL: &str = "sentinel";

/// Watches one shoot and keeps its kube-controller-manager.
pub struct RaceObserver {
    api: KubeApi,
    ever_unknown: Followed<BTreeSet<String>>,
    manager: DeploymentPod,
}

impl RaceObserver {
    /// Begins; kube-controller-manager starts as soon as its Deployment has replicas.
    pub fn of(shoot: &ShootCluster, programs: &Path, grace: Duration) -> Result<Self> {
        let api = shoot.plane.api().clone();
        let manager = ControllerManager::new(programs, shoot.plane.admin_kubeconfig(), grace)?;
        Ok(Self {
            ever_unknown: unknown_nodes(&api),
            manager: DeploymentPod::start(shoot, KCM, manager),
            api,
        })
    }

    /// From now on nodes are counted again.
    pub fn begin(&self) {
        self.ever_unknown.get().clear();
        *self.manager.ended.lock() = None;
    }

    /// How many nodes were Unknown since then.
    pub fn unknown(&self) -> usize {
        let unknown = self.ever_unknown.get();
        unknown.iter().filter(|name| *name != SENTINEL).count()
    }

    /// When kube-controller-manager's process ended since then, and how long after SIGTERM.
    pub fn end(&self) -> Option<(DateTime<Utc>, Duration)> {
        *self.manager.ended.lock()
    }

    /// Waits until kube-controller-manager is seen at work.
    pub async fn at_work(&self) -> Result<()> {
        let path = format!("/api/v1/nodes/{SENTINEL}");
        self.api.delete(&path).await?;
        let mut sentinel = node(SENTINEL, "pool");
        sentinel["status"]["conditions"] =
            json!([{"type": "Ready", "status": "False", "lastHeartbeatTime": Utc::now()}]);
        self.api.create(&sentinel).await?;
        eventually("kube-controller-manager watches the nodes", async || {
            let taints = self.api.get(&path).await?["spec"]["taints"].take();
            let is_tainted = items(&taints).any(|taint| taint["effect"] == "NoExecute");
            let said = self.manager.program().await.tail(5);
            ensure!(
                is_tainted,
                "the node that is not ready has no taint; {said}"
            );
            Ok(())
        })
        .await
    }
}
