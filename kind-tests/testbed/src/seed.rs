//! A seed: a control plane with Gardener's resources and roles, kubelets that follow, and a journal
//! of what happened to the dependent resources.

mod journal;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

pub use crate::kubelets::READY_AFTER;
pub use journal::{IGNORE, Journal, JournalEntry, MARKER, MEMORY, ReplicaState};

use crate::audit::{Asked, Mark};
use crate::control_plane::ControlPlane;
use crate::gardener::{CLUSTERS, GARDEN, MACHINES, PROBER, PROBER_USER, definitions, seed_access};
use crate::kube_api::{KubeApi, ObjectChange};
use crate::kubelets::{Pods, ready};
use crate::objects::path;
use crate::reaper;

/// The collections of resources that a prober may be configured to scale, over all namespaces.
const DEPENDENTS: [&str; 3] = [
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/bed.example.org/v1/scalers",
];
/// How often the kubelets check whether a change is due.
const TICK: Duration = Duration::from_millis(25);
/// Their writes in flight: enough for a seed on which hundreds of Deployments change at once.
const IN_FLIGHT: usize = 16;
/// How long pods take to start or end, unless an annotation says otherwise.
const USUAL: Duration = Duration::from_millis(200);

/// A seed.
pub struct SeedCluster {
    plane: ControlPlane,
    journal: Arc<Journal>,
    folder: PathBuf,
    log: Mutex<PathBuf>,
    _tasks: JoinSet<()>,
}

impl SeedCluster {
    /// Makes a seed out of a control plane: brings what Gardener brings, and waits until it is
    /// served.
    pub async fn prepare(plane: ControlPlane) -> Result<Self> {
        let api = plane.api().clone();
        api.create_all(&definitions()).await?;
        api.create_all(&seed_access()).await?;
        for collection in [CLUSTERS, &format!("{MACHINES}/machines"), DEPENDENTS[2]] {
            api.appears(collection).await?;
        }
        let journal = Arc::new(Journal::default());
        let pods = Arc::new(Mutex::new(Pods::new(USUAL)));
        let mut tasks = JoinSet::new();
        tasks.spawn(run(pods.clone(), api.clone()));
        for collection in DEPENDENTS {
            let (api, journal, pods) = (api.clone(), journal.clone(), pods.clone());
            let observe = move |change| {
                if let ObjectChange::Set(object) = &change
                    && let Ok(path) = path(object)
                {
                    pods.lock().observe(&path, object, Instant::now());
                }
                journal.write(&change);
            };
            tasks.spawn(async move { api.keep_following(collection, observe).await });
        }
        Ok(Self {
            plane,
            journal,
            folder: reaper::folder("prober")?,
            log: Mutex::default(),
            _tasks: tasks,
        })
    }

    /// The seed's API, for its administrator.
    pub fn api(&self) -> &KubeApi {
        self.plane.api()
    }

    /// The seed's control plane.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// What happened to the dependent resources.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// A folder for this seed's probers.
    pub fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// A kubeconfig with the rights of an account in garden, and no more.
    pub async fn kubeconfig(&self, account: &str) -> Result<String> {
        let token = self.api().token(GARDEN, account).await?;
        Ok(self.plane.kubeconfig(&token))
    }

    /// A kubeconfig with the prober's rights.
    pub async fn prober_kubeconfig(&self) -> Result<String> {
        self.kubeconfig(PROBER).await
    }

    /// The log of the prober that was started last.
    pub fn log(&self) -> PathBuf {
        self.log.lock().clone()
    }

    /// Tells where the prober writes its log.
    pub fn set_log(&self, log: PathBuf) {
        *self.log.lock() = log;
    }

    /// What a prober asked of this seed.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked_since(&Mark::default())
    }

    /// What a prober asked of this seed since then.
    pub fn asked_since(&self, mark: &Mark) -> Vec<Asked> {
        self.plane.asked_by(PROBER_USER, mark)
    }
}

/// Runs the pods of the resources at these paths.
async fn run(pods: Arc<Mutex<Pods<String>>>, api: KubeApi) {
    loop {
        sleep(TICK).await;
        // As on a real seed, no kubelet waits for another.
        let write = async |(path, replicas): (String, i64)| {
            // Gone meanwhile, or written again: the watch tells.
            let _ = api.merge(&format!("{path}/status"), &ready(replicas)).await;
        };
        let due = pods.lock().take_due(Instant::now());
        let due = futures::stream::iter(due);
        due.for_each_concurrent(IN_FLIGHT, write).await;
    }
}
