//! The other runner: a real kube-controller-manager that marks nodes Unknown, and ends when its
//! Deployment is at 0. And who watches it: whether it is at work, and which nodes it ever marked.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use testbed::control_plane::ControllerManager;
use testbed::gardener::node;
use testbed::kube_api::ObjectChange;
use testbed::objects::{items, name};
use testbed::shoot::KCM;
use testbed::{KubeApi, ShootCluster, eventually};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

const NODES: &str = "/api/v1/nodes";
/// A node that is not ready, and that no Machine backs. kube-controller-manager taints it in its
/// first round; that shows that it watches the nodes.
const SENTINEL: &str = "sentinel";
/// How long kube-controller-manager is left alone that did not start or end.
const PAUSE: Duration = Duration::from_millis(200);

/// What was observed of one shoot since the beginning of the last outage.
#[derive(Clone, Default)]
pub struct RaceObservation {
    /// The nodes that were ever Unknown.
    pub unknown: BTreeSet<String>,
    /// When kube-controller-manager's process ended, and how long after SIGTERM.
    pub end: Option<(DateTime<Utc>, Duration)>,
    at_work: bool,
    /// Why kube-controller-manager did last not start or end.
    trouble: String,
}

/// Watches one shoot and keeps its kube-controller-manager.
pub struct RaceObserver {
    pub seen: watch::Sender<RaceObservation>,
    _tasks: JoinSet<()>,
}

impl RaceObserver {
    /// Begins; kube-controller-manager starts as soon as its Deployment has replicas.
    pub fn of(shoot: &ShootCluster, programs: &Path, grace: Duration) -> Result<Self> {
        let seen = watch::Sender::default();
        let api = shoot.plane.api().clone();
        let mut controllers = ControllerPod {
            manager: ControllerManager::new(programs, shoot.plane.admin_kubeconfig(), grace)?,
            api: api.clone(),
            seen: seen.clone(),
        };
        let (mut states, kcm) = (
            shoot.seed.journal().states(),
            (shoot.namespace.clone(), KCM.to_owned()),
        );
        let mut tasks = JoinSet::new();
        tasks.spawn(follow_nodes(api, seen.clone()));
        tasks.spawn(async move {
            loop {
                let state = states.borrow_and_update().get(&kcm).cloned();
                let wanted = state.is_some_and(|state| state.replicas > 0);
                if let Err(error) = controllers.set_running(wanted).await {
                    let trouble = format!("{error:#}");
                    controllers.seen.send_modify(|seen| seen.trouble = trouble);
                    sleep(PAUSE).await;
                } else if states.changed().await.is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            seen,
            _tasks: tasks,
        })
    }

    /// From now on nodes are counted again.
    pub fn begin(&self) {
        self.seen
            .send_modify(|seen| (seen.unknown, seen.end) = Default::default());
    }

    /// Waits until kube-controller-manager is seen at work.
    pub async fn at_work(&self) -> Result<()> {
        eventually("kube-controller-manager watches the nodes", async || {
            let seen = self.seen.borrow();
            ensure!(
                seen.at_work,
                "the node that is not ready has no taint; {}",
                seen.trouble
            );
            Ok(())
        })
        .await
    }
}

async fn follow_nodes(api: KubeApi, seen: watch::Sender<RaceObservation>) {
    let observe = |change| {
        let ObjectChange::Set(node) = change else {
            return;
        };
        let is_unknown = |one: &Value| one["type"] == "Ready" && one["status"] == "Unknown";
        if name(&node) == SENTINEL {
            let mut taints = items(&node["spec"]["taints"]);
            let is_tainted = taints.any(|taint| taint["effect"] == "NoExecute");
            seen.send_modify(|seen| seen.at_work = is_tainted);
        } else if items(&node["status"]["conditions"]).any(is_unknown) {
            seen.send_modify(|seen| seen.unknown.extend([name(&node).to_owned()]));
        }
    };
    api.keep_following(NODES, observe).await;
}

/// A shoot's kube-controller-manager, which runs as its Deployment wants it: SIGTERM comes at once
/// when that is at 0, as from a kubelet.
struct ControllerPod {
    manager: ControllerManager,
    api: KubeApi,
    seen: watch::Sender<RaceObservation>,
}

impl ControllerPod {
    async fn set_running(&mut self, wanted: bool) -> Result<()> {
        match (wanted, self.manager.is_running()) {
            (true, false) => {
                self.api.delete(&format!("{NODES}/{SENTINEL}")).await?;
                self.seen.send_modify(|seen| seen.at_work = false);
                let mut sentinel = node(SENTINEL, "pool");
                sentinel["status"]["conditions"] =
                    json!([{"type": "Ready", "status": "False", "lastHeartbeatTime": Utc::now()}]);
                self.api.create(&sentinel).await?;
                self.manager.set_running(true)
            }
            (false, true) => {
                let took = self.manager.terminate().await?.context("it did not run")?;
                let end = Some((Utc::now(), took));
                self.seen
                    .send_modify(|seen| (seen.at_work, seen.end) = (false, end));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
