//! A seed and a shoot in memory, nodes that renew, stand-ins for kubelets, and a folder for the
//! process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_server::{Authority, MemoryApi, Options, Record};
use faults::writes::write_kind;
use parking_lot::Mutex;
use testbed::agent::{AgentKind, AgentStart};
pub use testbed::gardener::KCM;
use testbed::gardener::{CA, MCM, resources, seed_prober};
use testbed::kubelets::Kubelets;
use testbed::memory::{MemoryNodes, MemoryShootPlan};
use testbed::prober::{ProberConfig, dependent};
use testbed::seed::ReplicaState;
use testbed::shoot::LEASES;
use testbed::{PATIENCE, reaper};
use tokio::time::timeout;

const NAMESPACE: &str = "shoot--p--s";
const TOKEN: &str = "first";
const DEPLOYMENTS: &str = "deployments.apps";
/// What is scaled, with its replicas and its levels up and down.
const DEPENDENTS: [(&str, i64, i64, i64); 3] = [(KCM, 2, 0, 1), (MCM, 1, 1, 0), (CA, 3, 2, 0)];

pub struct ProcessWorld {
    pub seed: MemoryApi,
    shoot: MemoryApi,
    pub nodes: MemoryNodes,
    pub folder: PathBuf,
    pub config: ProberConfig,
    /// How often the prober changed each dependent, or what it did wrong.
    changes: Arc<Mutex<BTreeMap<String, Result<usize, String>>>>,
    _kubelets: Kubelets,
}

/// Whether a request is a write to a dependent.
pub fn scales(record: &Record) -> bool {
    record.verb == "patch" && record.resource == DEPLOYMENTS
}

/// Waits until so many requests to a server are so.
pub async fn requests(
    api: &MemoryApi,
    count: usize,
    what: &str,
    so: impl Fn(&Record) -> bool,
) -> Result<()> {
    let enough = api
        .requests()
        .wait_for(|all| (all.iter().filter(|record| so(record)).count() >= count).then_some(()));
    timeout(PATIENCE, enough)
        .await
        .with_context(|| format!("not {count} times: {what}"))
}

impl ProcessWorld {
    /// A healthy shoot with three nodes.
    pub async fn new() -> Result<Self> {
        // Another test of this process may have installed it already.
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let authority = Authority::new()?;
        let server = || {
            let resources = resources();
            let options = Options {
                resources,
                ..Options::default()
            };
            MemoryApi::start(&authority, options)
        };
        let (seed, shoot) = (server().await?, server().await?);
        seed.access().grant(TOKEN, seed_prober());
        let plan = MemoryShootPlan {
            namespace: NAMESPACE,
            deployments: &DEPENDENTS.map(|(name, replicas, ..)| (name, replicas)),
            ..MemoryShootPlan::default()
        };
        let nodes = plan.furnish(seed.store(), &shoot)?;
        let changes = Arc::<Mutex<BTreeMap<String, Result<usize, String>>>>::default();
        let counted = changes.clone();
        seed.store().observe(move |seen| {
            let (Some(_), Some(before)) = (seen.request, seen.before) else {
                return;
            };
            if seen.resource.plural == "deployments" {
                let name = seen.after["metadata"]["name"].as_str().unwrap_or_default();
                let mut changes = counted.lock();
                let count = changes.entry(name.to_owned()).or_insert(Ok(0));
                let is_right = write_kind(before, seen.after);
                *count = is_right.and_then(|_| count.clone()).map(|count| count + 1);
            }
        });
        let kubelets = Kubelets::start(seed.store(), &[DEPLOYMENTS], Duration::ZERO);
        let dependents = DEPENDENTS
            .map(|(name, _, up, down)| dependent("apps/v1", "Deployment", name, up, down));
        Ok(Self {
            seed,
            shoot,
            nodes,
            folder: reaper::folder("clocks")?,
            config: ProberConfig {
                initial_delay: "0s",
                dependents: dependents.into(),
                ..ProberConfig::default()
            },
            changes,
            _kubelets: kubelets,
        })
    }

    /// How the prober is started.
    pub fn prober(&self) -> Result<AgentStart> {
        let start = AgentStart::new(
            AgentKind::Prober,
            &self.folder,
            "prober",
            &self.seed.kubeconfig(TOKEN),
            &self.config.text(),
        )?;
        Ok(start.with(["--enable-leader-election=false"]))
    }

    /// Fails unless the prober has changed each dependent as often as is said, and never wrongly.
    pub fn was_changed(&self, times: impl Fn(&str) -> usize) -> Result<()> {
        let changes = self.changes.lock();
        for (name, ..) in DEPENDENTS {
            let made = changes.get(name).cloned().unwrap_or(Ok(0));
            ensure!(made == Ok(times(name)), "{name}: {made:?} changes");
        }
        Ok(())
    }

    /// Waits until every dependent is so; it has these replicas when nobody holds it down.
    async fn all(&self, what: &str, so: impl Fn(i64, &ReplicaState) -> bool) -> Result<()> {
        let reached = self.seed.store().wait_for(|store| {
            let right = |(name, replicas, ..): &(&str, i64, i64, i64)| {
                let object = store.get(DEPLOYMENTS, NAMESPACE, name);
                object.is_some_and(|object| so(*replicas, &ReplicaState::of(&object)))
            };
            DEPENDENTS.iter().all(right).then_some(())
        });
        let reached = timeout(PATIENCE, reached).await;
        reached.with_context(|| format!("not in time: {what}: {:?}", self.changes.lock()))
    }

    /// Waits until all are held down, each with its memory.
    pub async fn held_down(&self) -> Result<()> {
        self.all("all held down", |replicas, state| {
            state.is_held_down(&replicas.to_string())
        })
        .await
    }

    /// Waits until all are up, with no trace of the prober.
    pub async fn free(&self) -> Result<()> {
        self.all("all free", |replicas, state| state.is_free_at(replicas))
            .await
    }

    /// Waits until the shoot has answered so many more probes.
    pub async fn looks(&self, count: usize) -> Result<()> {
        let answered = |record: &Record| record.path == LEASES && record.status == Some(200);
        let before = self.shoot.requests().count(answered);
        requests(&self.shoot, before + count, "the shoot is probed", answered).await
    }
}
