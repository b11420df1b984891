//! A seed: a control plane with Gardener's resources and roles, kubelets that follow, and a journal
//! of what happened to the dependent resources.

mod journal;
mod kubelets;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use crate::kubelets::READY_AFTER;
pub use journal::{IGNORE, Journal, JournalEntry, MARKER, MEMORY, ReplicaState};

use crate::agent::RunningAgent;
use crate::audit::{Asked, Mark};
use crate::control_plane::ControlPlane;
use crate::gardener::{CLUSTERS, GARDEN, MACHINES, PROBER, PROBER_USER, definitions, seed_access};
use crate::kube_api::{KubeApi, ObjectChange};
use crate::kubelets::Pods;
use crate::loan::Loan;
use crate::objects::path;
use crate::reaper;
use crate::secrets;
use crate::wait::eventually;

/// A seed.
pub struct SeedCluster {
    plane: ControlPlane,
    journal: Arc<Journal>,
    folder: PathBuf,
    mark: Mark,
    prober: Mutex<Option<RunningAgent>>,
    log: Mutex<PathBuf>,
    _tasks: JoinSet<()>,
    /// The last to be dropped: nothing of the seed is at work any more when somebody else gets its
    /// control plane.
    _loan: Option<Loan>,
}

/// The collections of resources that a prober may be configured to scale, over all namespaces.
const DEPENDENTS: [&str; 3] = [
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/bed.example.org/v1/scalers",
];

impl SeedCluster {
    /// Makes a seed out of a control plane.
    pub async fn prepare(plane: ControlPlane) -> Result<Self> {
        Self::equip(&plane).await?;
        Self::begin(plane, None).await
    }

    /// Brings what Gardener brings into a seed, and waits until it is served.
    pub(crate) async fn equip(plane: &ControlPlane) -> Result<()> {
        let api = plane.api();
        api.create_all(&definitions()).await?;
        api.create_all(&seed_access()).await?;
        for collection in [CLUSTERS, &format!("{MACHINES}/machines"), DEPENDENTS[2]] {
            eventually("the seed serves Gardener's resources", async || {
                api.get(collection).await
            })
            .await?;
        }
        Ok(())
    }

    /// A seed on a control plane that has all that one needs.
    pub(crate) async fn begin(plane: ControlPlane, loan: Option<Loan>) -> Result<Self> {
        let api = plane.api().clone();
        let journal = Arc::new(Journal::default());
        let pods = Arc::new(Mutex::new(Pods::new(kubelets::USUAL)));
        let mut tasks = JoinSet::new();
        tasks.spawn(kubelets::run(pods.clone(), api.clone()));
        for collection in DEPENDENTS {
            let (api, journal, pods) = (api.clone(), journal.clone(), pods.clone());
            tasks.spawn(follow(api, collection, journal, pods));
        }
        Ok(Self {
            mark: plane.mark(),
            plane,
            journal,
            folder: reaper::folder("prober")?,
            prober: Mutex::default(),
            log: Mutex::default(),
            _tasks: tasks,
            _loan: loan,
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

    /// Sets or removes an annotation of a namespace.
    pub async fn annotate(&self, namespace: &str, key: &str, value: Option<&str>) -> Result<()> {
        let path = format!("/api/v1/namespaces/{namespace}");
        self.api().annotate(&path, key, value).await
    }

    /// A kubeconfig with the prober's rights, and no more.
    pub async fn prober_kubeconfig(&self) -> Result<String> {
        let token = self.api().token(GARDEN, PROBER).await?;
        Ok(self.plane.kubeconfig(&self.plane.url(), &token))
    }

    /// Keeps a prober at work as long as there is this seed.
    pub fn keep(&self, prober: RunningAgent) {
        *self.prober.lock() = Some(prober);
    }

    /// Whether the prober that is kept is still at work.
    pub fn is_probed(&self) -> bool {
        let mut prober = self.prober.lock();
        prober.as_mut().is_some_and(|prober| prober.is_running())
    }

    /// The log of the prober that was started last.
    pub fn log(&self) -> PathBuf {
        self.log.lock().clone()
    }

    /// Tells where the prober writes its log.
    pub fn set_log(&self, log: PathBuf) {
        *self.log.lock() = log;
    }

    /// Searches all Events for credentials.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn search_events(&self) -> Result<()> {
        let events = self.api().get("/api/v1/events").await?;
        secrets::all().search("an Event", events.to_string().as_bytes());
        Ok(())
    }

    /// What a prober asked of this seed, since the seed was prepared.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked_by(PROBER_USER)
    }

    /// What a user asked of this seed, since the seed was prepared.
    pub fn asked_by(&self, user: &str) -> Vec<Asked> {
        self.plane.asked_by(user, &self.mark)
    }

    /// What a prober asked of this seed since then.
    pub fn asked_since(&self, mark: &Mark) -> Vec<Asked> {
        self.plane.asked_by(PROBER_USER, mark)
    }
}

async fn follow(
    api: KubeApi,
    collection: &'static str,
    journal: Arc<Journal>,
    pods: Arc<Mutex<Pods<String>>>,
) {
    let observe = |change| {
        if let ObjectChange::Set(object) = &change
            && let Ok(path) = path(object)
        {
            pods.lock().observe(&path, object, Instant::now());
        }
        journal.write(&change);
    };
    api.keep_following(collection, observe).await;
}
