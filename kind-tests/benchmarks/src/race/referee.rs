//! The other runner: a real kube-controller-manager that gives nodes up, and ends when its Deployment is at 0. And who watches
//! it: whether it is at work, and which nodes it ever gave up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use testbed::control_plane::ControllerManager;
use testbed::kube_api::Change;
use testbed::seed::Dependent;
use testbed::shoot::KCM;
use testbed::{KubeApi, Shoot, eventually};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

const NODES: &str = "/api/v1/nodes";
/// A node that is not ready, and that no Machine backs. kube-controller-manager taints it in its first round; that shows
/// that it watches the nodes.
const SENTINEL: &str = "sentinel";
/// How long a watch that broke waits before it begins anew.
const PAUSE: Duration = Duration::from_millis(200);
/// kube-controller-manager starts within some seconds and looks at the nodes every 5 s; a busy machine takes longer.
const AT_WORK: Duration = Duration::from_secs(60);

/// The Deployments of a shoot, by name.
pub type Deployments = BTreeMap<String, Dependent>;

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
    trouble: Option<String>,
}

/// Watches one shoot and keeps its kube-controller-manager.
pub struct Referee {
    seen: Arc<Mutex<Seen>>,
    deployments: watch::Receiver<Deployments>,
    _tasks: JoinSet<()>,
}

impl Referee {
    /// Begins; kube-controller-manager starts as soon as its Deployment has replicas.
    pub fn of(shoot: &Shoot, programs: &Path, grace: Duration) -> Result<Self> {
        let manager = ControllerManager::new(programs, shoot.plane.admin_kubeconfig(), grace)?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (sender, deployments) = watch::channel(Deployments::new());
        let path = format!("/apis/apps/v1/namespaces/{}/deployments", shoot.namespace);
        let mut tasks = JoinSet::new();
        tasks.spawn(follow_deployments(shoot.seed.api().clone(), path, sender));
        tasks.spawn(follow_nodes(shoot.plane.api().clone(), seen.clone()));
        tasks.spawn(keep(manager, shoot.plane.api().clone(), deployments.clone(), seen.clone()));
        Ok(Self { seen, deployments, _tasks: tasks })
    }

    fn look<T>(&self, at: impl FnOnce(&mut Seen) -> T) -> T {
        at(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on nodes are counted anew.
    pub fn begin(&self) {
        self.look(|seen| {
            seen.unknown.clear();
            seen.end = None;
        });
    }

    /// The Deployments as they are now.
    pub fn deployments(&self) -> Deployments {
        self.deployments.borrow().clone()
    }

    /// How many nodes were ever Unknown since [`Referee::begin`].
    pub fn unknown(&self) -> usize {
        self.look(|seen| seen.unknown.len())
    }

    /// When kube-controller-manager ended since [`Referee::begin`].
    pub fn end(&self) -> Option<End> {
        self.look(|seen| seen.end)
    }

    /// Waits until kube-controller-manager is seen at work.
    pub async fn at_work(&self) -> Result<()> {
        eventually("kube-controller-manager watches the nodes", AT_WORK, async || {
            let (at_work, trouble) = self.look(|seen| (seen.at_work, seen.trouble.clone()));
            ensure!(at_work, "the node that is not ready has no taint; {}", trouble.unwrap_or_default());
            Ok(())
        })
        .await
    }
}

async fn follow_deployments(api: KubeApi, path: String, deployments: watch::Sender<Deployments>) {
    loop {
        let _ = api
            .follow(&path, |change| {
                deployments.send_modify(|deployments| match change {
                    Change::Set(object) => drop(deployments.insert(name(&object), Dependent::of(&object))),
                    Change::Gone(object) => drop(deployments.remove(&name(&object))),
                });
            })
            .await;
        sleep(PAUSE).await;
    }
}

async fn follow_nodes(api: KubeApi, seen: Arc<Mutex<Seen>>) {
    loop {
        let _ = api
            .follow(NODES, |change| {
                let Change::Set(node) = change else { return };
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                let name = name(&node);
                if name == SENTINEL {
                    seen.at_work = is_tainted(&node);
                } else if readiness(&node) == Some("Unknown") {
                    seen.unknown.insert(name);
                }
            })
            .await;
        sleep(PAUSE).await;
    }
}

/// Runs kube-controller-manager as its Deployment wants it: SIGTERM comes at once when that is at 0, as from a kubelet.
async fn keep(
    mut manager: ControllerManager,
    api: KubeApi,
    mut deployments: watch::Receiver<Deployments>,
    seen: Arc<Mutex<Seen>>,
) {
    loop {
        let wanted = deployments.borrow_and_update().get(KCM).is_some_and(|state| state.replicas > 0);
        let done = match (wanted, manager.is_running()) {
            (true, false) => start(&mut manager, &api, &seen).await,
            (false, true) => stop(&mut manager, &seen).await,
            _ => Ok(()),
        };
        if let Err(error) = done {
            seen.lock().unwrap_or_else(PoisonError::into_inner).trouble = Some(format!("{error:#}"));
            sleep(PAUSE).await;
        } else if deployments.changed().await.is_err() {
            return;
        }
    }
}

async fn start(manager: &mut ControllerManager, api: &KubeApi, seen: &Mutex<Seen>) -> Result<()> {
    api.delete(&format!("{NODES}/{SENTINEL}")).await?;
    seen.lock().unwrap_or_else(PoisonError::into_inner).at_work = false;
    api.create(NODES, &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": SENTINEL}})).await?;
    let now = Utc::now().to_rfc3339();
    let ready = json!({
        "type": "Ready", "status": "False", "reason": "KubeletNotReady",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    });
    api.merge(&format!("{NODES}/{SENTINEL}/status"), &json!({"status": {"conditions": [ready]}})).await?;
    manager.set_running(true)
}

async fn stop(manager: &mut ControllerManager, seen: &Mutex<Seen>) -> Result<()> {
    let took = manager.terminate().await?.context("it did not run")?;
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.at_work = false;
    seen.end = Some(End { at: Utc::now(), took });
    Ok(())
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().into()
}

fn readiness(node: &Value) -> Option<&str> {
    let conditions = node["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Ready")?["status"].as_str()
}

fn is_tainted(node: &Value) -> bool {
    node["spec"]["taints"].as_array().is_some_and(|taints| taints.iter().any(|taint| taint["effect"] == "NoExecute"))
}
