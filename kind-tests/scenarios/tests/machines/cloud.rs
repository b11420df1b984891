//! The VMs that a machine-controller-manager makes and deletes, and a kubelet on each.
//!
//! ```text
//! machine-controller --a file for each VM--> folder <--polls-- host --begins, ends--> kubelets --node, lease--> shoot
//! ```
//! Nobody collects garbage in these shoots: the lease of a VM that is gone is deleted here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::{Value, json};
use testbed::objects::items;
use testbed::renewers::{LeaseRenewers, LeaseWriter};
use testbed::shoot::LEASES;
use testbed::{KubeApi, gardener, reaper};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The worker pool of every node.
pub const POOL: &str = "pool";
/// How often the host polls the folder.
const TICK: Duration = Duration::from_millis(100);
/// From one VM's phase to the next one's, in beats: any number of them are spread well (the golden
/// ratio).
const NEXT_PHASE: f64 = 0.618;

/// The VMs of one shoot. Dropping it ends their kubelets.
pub struct Cloud {
    folder: PathBuf,
    vms: Arc<Mutex<Vms>>,
    host: JoinSet<()>,
}

/// The VMs that have a kubelet.
struct Vms {
    kubelets: LeaseRenewers<VmKubelet>,
    /// Whether there is no way from the nodes to the API server.
    cut: bool,
    broken: BTreeSet<String>,
    /// How many there ever were.
    serial: u32,
}

impl Cloud {
    /// No VM yet; the nodes join the shoot with this API and renew leases that last for `grace`.
    pub fn start(api: KubeApi, grace: Duration) -> Result<Self> {
        let folder = reaper::folder("vms")?;
        let kubelet = VmKubelet {
            api: api.clone(),
            grace,
        };
        let vms = Arc::new(Mutex::new(Vms {
            kubelets: LeaseRenewers::new(kubelet, grace / 4),
            cut: false,
            broken: BTreeSet::new(),
            serial: 0,
        }));
        let host = JoinSet::from_iter([run(folder.clone(), vms.clone(), api)]);
        Ok(Self { folder, vms, host })
    }

    /// Where each file is a VM.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of the VMs.
    pub fn names(&self) -> Result<BTreeSet<String>> {
        names(&self.folder)
    }

    /// Cuts the way of all nodes to the API server, also of those that are yet to come. No renewal
    /// lands after this has returned.
    pub async fn cut(&self) {
        self.change(|vms| vms.cut = true).await;
    }

    /// Opens the way again.
    pub async fn heal(&self) {
        self.change(|vms| vms.cut = false).await;
    }

    /// Breaks a VM: its kubelet says nothing any more.
    pub async fn break_down(&self, name: &str) {
        self.change(|vms| vms.broken.extend([name.to_owned()]))
            .await;
    }

    async fn change(&self, change: impl FnOnce(&mut Vms)) {
        let mut vms = self.vms.lock().await;
        change(&mut vms);
        vms.apply();
        vms.kubelets.settled().await;
    }

    /// Ends all kubelets. No renewal lands after this has returned.
    pub async fn end(self) {
        drop(self.host);
        self.vms.lock().await.end_all_but(&BTreeSet::new()).await;
    }
}

impl Vms {
    /// Lets those kubelets speak that can.
    fn apply(&self) {
        for (number, name) in self.kubelets.names().iter().enumerate() {
            if self.cut || self.broken.contains(name) {
                self.kubelets.cut([number]);
            } else {
                self.kubelets.heal([number]);
            }
        }
    }

    fn begin(&mut self, name: &str) {
        self.serial += 1;
        let phase = (f64::from(self.serial) * NEXT_PHASE).fract();
        let phase = self.kubelets.beat().mul_f64(phase);
        self.kubelets.join(name, phase);
        self.apply();
    }

    /// Ends the other VMs' kubelets, and returns their names.
    async fn end_all_but(&mut self, kept: &BTreeSet<String>) -> BTreeSet<String> {
        let gone = &self.names() - kept;
        for name in &gone {
            self.kubelets.leave(name);
            self.broken.remove(name);
        }
        if !gone.is_empty() {
            self.kubelets.settled().await;
        }
        gone
    }

    fn names(&self) -> BTreeSet<String> {
        self.kubelets.names().iter().cloned().collect()
    }
}

/// Runs a kubelet on each VM.
async fn run(folder: PathBuf, vms: Arc<Mutex<Vms>>, api: KubeApi) {
    // Whoever deletes this folder has no more use for its VMs.
    while let Ok(names) = names(&folder) {
        let gone = {
            let mut vms = vms.lock().await;
            for name in &names - &vms.names() {
                vms.begin(&name);
            }
            vms.end_all_but(&names).await
        };
        for name in gone {
            // A lease that stays is one without a Machine, which is nobody's candidate.
            let _ = api.delete(&format!("{LEASES}/{name}")).await;
        }
        sleep(TICK).await;
    }
}

fn names(folder: &Path) -> Result<BTreeSet<String>> {
    let files = std::fs::read_dir(folder)?;
    files
        .map(|file| Ok(file?.file_name().to_string_lossy().into_owned()))
        .collect()
}

/// What a kubelet does once in a beat.
#[derive(Clone)]
struct VmKubelet {
    api: KubeApi,
    grace: Duration,
}

impl LeaseWriter for VmKubelet {
    async fn renew(&self, name: &str) -> bool {
        self.beat(name).await.is_ok()
    }
}

impl VmKubelet {
    /// Registers the node where there is none, renews its lease, and corrects conditions that
    /// others have set meanwhile.
    async fn beat(&self, name: &str) -> Result<()> {
        let own = gardener::node(name, POOL);
        let lease = gardener::lease(name, self.grace.as_secs(), TimeDelta::zero());
        let path = format!("/api/v1/nodes/{name}");
        let Some(node) = self.api.find(&path).await? else {
            return self.api.create_all(&[lease, own]).await;
        };
        self.api.merge(&format!("{LEASES}/{name}"), &lease).await?;
        if let Some(conditions) = corrected(&node, &own) {
            let status = json!({"status": {"conditions": conditions}});
            self.api.merge(&format!("{path}/status"), &status).await?;
        }
        Ok(())
    }
}

/// The conditions of a node with its kubelet's own as they are, if they differ.
/// kube-controller-manager sets all four of them to Unknown, and machine-controller-manager takes a
/// node for healthy only when all are back.
fn corrected(node: &Value, own: &Value) -> Option<Vec<Value>> {
    let posted = || items(&node["status"]["conditions"]);
    let own = || items(&own["status"]["conditions"]);
    let is_posted =
        |own: &Value| posted().any(|it| it["type"] == own["type"] && it["status"] == own["status"]);
    if own().all(is_posted) {
        return None;
    }
    let others = posted().filter(|it| own().all(|own| own["type"] != it["type"]));
    Some(own().chain(others).cloned().collect())
}
