//! The VMs that a machine-controller-manager makes and deletes, and a kubelet on each.
//!
//! ```text
//! machine-controller --a file for each VM--> folder <--polls-- host --begins, ends--> kubelets --node, lease--> shoot
//! ```
//! Nobody collects garbage in these shoots: the lease of a VM that is gone is deleted here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::json;
use testbed::renewers::{LeaseRenewers, LeaseWriter};
use testbed::shoot::LEASES;
use testbed::{KubeApi, gardener, reaper};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The worker pool of every node.
pub const POOL: &str = "worker";
/// How often the host polls the folder.
const TICK: Duration = Duration::from_millis(100);
/// From one VM's phase to the next one's, in beats: any number of them are spread well (the golden
/// ratio).
const NEXT_PHASE: f64 = 0.618;

/// The VMs of one shoot. Dropping it ends their kubelets.
pub struct Cloud {
    folder: PathBuf,
    /// Whether there is no way from the nodes to the API server.
    is_cut: Arc<AtomicBool>,
    kubelets: Kubelets,
    _host: JoinSet<()>,
}

type Kubelets = Arc<tokio::sync::Mutex<LeaseRenewers<VmKubelet>>>;

impl Cloud {
    /// No VM yet; the nodes join the shoot with this API and renew leases that last for `grace`.
    pub fn start(api: KubeApi, grace: Duration) -> Result<Self> {
        let (folder, is_cut) = (reaper::folder("vms")?, Arc::<AtomicBool>::default());
        let kubelet = VmKubelet {
            api: api.clone(),
            grace,
            is_cut: is_cut.clone(),
        };
        let kubelets = LeaseRenewers::new(kubelet, grace / 4);
        let kubelets = Arc::new(tokio::sync::Mutex::new(kubelets));
        let host = run(folder.clone(), kubelets.clone(), api);
        Ok(Self {
            folder,
            is_cut,
            kubelets,
            _host: JoinSet::from_iter([host]),
        })
    }

    /// Where each file is a VM.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of the VMs.
    pub fn names(&self) -> Result<BTreeSet<String>> {
        names(&self.folder)
    }

    /// Cuts the way of all nodes to the API server, also of those that are yet to come, or opens it
    /// again. No renewal lands after it was cut.
    pub async fn cut(&self, cut: bool) {
        self.is_cut.store(cut, Ordering::Relaxed);
        self.kubelets.lock().await.settled().await;
    }
}

/// Runs a kubelet on each VM.
async fn run(folder: PathBuf, kubelets: Kubelets, api: KubeApi) {
    // Whoever deletes this folder has no more use for its VMs.
    while let Ok(vms) = names(&folder) {
        let mut kubelets = kubelets.lock().await;
        let known: BTreeSet<String> = kubelets.names().iter().cloned().collect();
        for new in &vms - &known {
            let phase = (kubelets.names().len() as f64 * NEXT_PHASE).fract();
            let phase = kubelets.beat().mul_f64(phase);
            kubelets.join(&new, phase);
        }
        for gone in &known - &vms {
            kubelets.leave(&gone);
            kubelets.settled().await;
            // A lease that stays is one without a Machine, which is nobody's candidate.
            let _ = api.delete(&format!("{LEASES}/{gone}")).await;
        }
        drop(kubelets);
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
    is_cut: Arc<AtomicBool>,
}

impl LeaseWriter for VmKubelet {
    async fn renew(&self, name: &str) -> bool {
        self.is_cut.load(Ordering::Relaxed) || self.beat(name).await.is_ok()
    }
}

impl VmKubelet {
    /// Registers the node where there is none, renews its lease, and posts its conditions: others
    /// set all of them to Unknown, and machine-controller-manager takes a node for healthy only when
    /// all are back.
    async fn beat(&self, name: &str) -> Result<()> {
        let own = gardener::node(name, POOL);
        let lease = gardener::lease(name, self.grace.as_secs(), TimeDelta::zero());
        self.api.create_all(&[lease.clone(), own.clone()]).await?;
        self.api.merge(&format!("{LEASES}/{name}"), &lease).await?;
        let conditions = json!({"status": {"conditions": own["status"]["conditions"]}});
        let status = format!("/api/v1/nodes/{name}/status");
        self.api.merge_items(&status, &conditions).await
    }
}
