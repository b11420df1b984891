//! The other runner: a real kube-controller-manager that gives nodes up, and ends when its Deployment is at 0. And who watches
//! it: whether it is at work, and which nodes it ever gave up.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use testbed::control_plane::ControllerManager;
use testbed::kube_api::Change;
use testbed::shoot::KCM;
use testbed::{KubeApi, Seed, Shoot, eventually};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

const NODES: &str = "/api/v1/nodes";
/// A node that is not ready, and that no Machine backs. kube-controller-manager taints it in its first round; that shows
/// that it watches the nodes.
const SENTINEL: &str = "sentinel";
/// How long a watch that broke waits before it begins again.
const PAUSE: Duration = Duration::from_millis(200);
/// kube-controller-manager starts within some seconds and looks at the nodes every 5 s; a busy machine takes longer.
const AT_WORK: Duration = Duration::from_secs(60);

/// The end of a kube-controller-manager's process.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub at: DateTime<Utc>,
    /// How long after SIGTERM.
    pub took: Duration,
}

/// What is seen of one shoot.
#[derive(Default)]
struct Seen {
    unknown: BTreeSet<String>,
    at_work: bool,
    end: Option<End>,
    /// Why kube-controller-manager did last not start or end.
    trouble: String,
}

/// Watches one shoot and keeps its kube-controller-manager.
pub struct Referee {
    seen: watch::Sender<Seen>,
    _tasks: JoinSet<()>,
}

impl Referee {
    /// Begins; kube-controller-manager starts as soon as its Deployment has replicas.
    pub fn of(shoot: &Shoot, programs: &Path, grace: Duration) -> Result<Self> {
        let manager = ControllerManager::new(programs, shoot.plane.admin_kubeconfig(), grace)?;
        let seen = watch::Sender::new(Seen::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(follow_nodes(shoot.plane.api().clone(), seen.clone()));
        let deployment = (shoot.namespace.clone(), KCM.to_owned());
        tasks.spawn(keep(manager, shoot.plane.api().clone(), shoot.seed.clone(), deployment, seen.clone()));
        Ok(Self { seen, _tasks: tasks })
    }

    /// From now on nodes are counted again.
    pub fn begin(&self) {
        self.seen.send_modify(|seen| {
            seen.unknown.clear();
            seen.end = None;
        });
    }

    /// How many nodes were ever Unknown since [`Referee::begin`].
    pub fn unknown(&self) -> usize {
        self.seen.borrow().unknown.len()
    }

    /// When kube-controller-manager ended since [`Referee::begin`].
    pub fn end(&self) -> Option<End> {
        self.seen.borrow().end
    }

    /// Waits until kube-controller-manager is seen at work.
    pub async fn at_work(&self) -> Result<()> {
        eventually("kube-controller-manager watches the nodes", AT_WORK, async || {
            let seen = self.seen.borrow();
            ensure!(seen.at_work, "the node that is not ready has no taint; {}", seen.trouble);
            Ok(())
        })
        .await
    }
}

async fn follow_nodes(api: KubeApi, seen: watch::Sender<Seen>) {
    loop {
        let _ = api
            .follow(NODES, |change| {
                let Change::Set(node) = change else { return };
                let name = node["metadata"]["name"].as_str().unwrap_or_default();
                if name == SENTINEL {
                    seen.send_modify(|seen| seen.at_work = is_tainted(&node));
                } else if readiness(&node) == Some("Unknown") {
                    seen.send_modify(|seen| seen.unknown.extend([name.to_owned()]));
                }
            })
            .await;
        sleep(PAUSE).await;
    }
}

/// Runs kube-controller-manager as its Deployment, of this namespace and name, wants it: SIGTERM comes at once when that is at 0, as from
/// a kubelet.
async fn keep(
    mut manager: ControllerManager,
    api: KubeApi,
    seed: Arc<Seed>,
    deployment: (String, String),
    seen: watch::Sender<Seen>,
) {
    let mut states = seed.journal().states();
    loop {
        let wanted = states.borrow_and_update().get(&deployment).is_some_and(|state| state.replicas > 0);
        let done = match (wanted, manager.is_running()) {
            (true, false) => start(&mut manager, &api, &seen).await,
            (false, true) => stop(&mut manager, &seen).await,
            _ => Ok(()),
        };
        if let Err(error) = done {
            seen.send_modify(|seen| seen.trouble = format!("{error:#}"));
            sleep(PAUSE).await;
        } else if states.changed().await.is_err() {
            return;
        }
    }
}

async fn start(manager: &mut ControllerManager, api: &KubeApi, seen: &watch::Sender<Seen>) -> Result<()> {
    api.delete(&format!("{NODES}/{SENTINEL}")).await?;
    seen.send_modify(|seen| seen.at_work = false);
    api.create(NODES, &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": SENTINEL}})).await?;
    let now = Utc::now().to_rfc3339();
    let ready = json!({
        "type": "Ready", "status": "False", "reason": "KubeletNotReady",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    });
    api.merge(&format!("{NODES}/{SENTINEL}/status"), &json!({"status": {"conditions": [ready]}})).await?;
    manager.set_running(true)
}

async fn stop(manager: &mut ControllerManager, seen: &watch::Sender<Seen>) -> Result<()> {
    let took = manager.terminate().await?.context("it did not run")?;
    let end = End { at: Utc::now(), took };
    seen.send_modify(|seen| (seen.at_work, seen.end) = (false, Some(end)));
    Ok(())
}

fn readiness(node: &Value) -> Option<&str> {
    let conditions = node["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Ready")?["status"].as_str()
}

fn is_tainted(node: &Value) -> bool {
    node["spec"]["taints"].as_array().is_some_and(|taints| taints.iter().any(|taint| taint["effect"] == "NoExecute"))
}
