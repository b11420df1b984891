//! A seed and a shoot in memory, nodes that renew, stand-ins for kubelets, and a folder for the
//! processes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use api_server::{Authority, MemoryApi, Options, Record, Resource, Rule};
use parking_lot::Mutex;
use testbed::agent::{AgentKind as RunningAgent, AgentStart};
pub use testbed::gardener::KCM;
use testbed::gardener::{deployment, resources, seed_prober};
use testbed::kubelets::Kubelets;
use testbed::memory::{MemoryNodes, MemoryShootPlan};
use testbed::prober::{ProberConfig, dependent};
use testbed::seed::ReplicaState;
use testbed::shoot::LEASES;
use testbed::{PATIENCE, reaper};
use tokio::time::timeout;

use crate::ledger::WriteLedger;

pub const NAMESPACE: &str = "shoot--p--s";
/// The tokens of two replicas, with the same rights.
pub const USERS: [&str; 2] = ["first", "second"];
/// It serves nothing: nothing but what it writes is looked at here.
pub const UNSERVED: [&str; 2] = ["--metrics-bind-addr=0", "--health-bind-addr=0"];
/// A killed leader's Lease ends soon; there is room between the times for a machine that does much
/// at once.
pub const ELECTION: [&str; 4] = [
    "--enable-leader-election=true",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=5s",
    "--leader-elect-retry-period=500ms",
];

/// A kind of dependents: full name, apiVersion, kind, name, replicas, levels up and down.
pub struct ScaledKind {
    pub resource: &'static str,
    api_version: &'static str,
    kind: &'static str,
    pub name: &'static str,
    pub replicas: i64,
    levels: (i64, i64),
    /// Changes of an outage and its end: 2 where one request does it all, 4 where one is for the
    /// annotations and one for the scale.
    pub changes: usize,
}

/// One of each kind that is scaled in a way of its own: the last one takes two requests in each
/// direction.
pub const KINDS: [ScaledKind; 3] = [
    ScaledKind {
        resource: "deployments.apps",
        api_version: "apps/v1",
        kind: "Deployment",
        name: KCM,
        replicas: 2,
        levels: (0, 1),
        changes: 2,
    },
    ScaledKind {
        resource: "statefulsets.apps",
        api_version: "apps/v1",
        kind: "StatefulSet",
        name: "etcd-main",
        replicas: 3,
        levels: (1, 0),
        changes: 2,
    },
    ScaledKind {
        resource: "stores.example.org",
        api_version: "example.org/v1",
        kind: "Store",
        name: "store",
        replicas: 5,
        levels: (2, 0),
        changes: 4,
    },
];

pub struct KillWorld {
    pub seed: MemoryApi,
    pub shoot: MemoryApi,
    pub nodes: MemoryNodes,
    pub folder: PathBuf,
    pub config: ProberConfig,
    /// What became of the dependents so far.
    pub ledger: Arc<Mutex<WriteLedger>>,
    _kubelets: Kubelets,
}

/// A server in memory that knows one more kind, with a scale subresource.
pub async fn server() -> Result<MemoryApi> {
    // Another test of this process may have installed it already.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let mut store = Resource::custom("example.org/v1", "stores", "Store").with_status();
    store = store.with_scale();
    MemoryApi::start(
        &Authority::new()?,
        Options {
            resources: [resources(), vec![store]].concat(),
            ..Options::default()
        },
    )
    .await
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

impl KillWorld {
    /// A healthy shoot with three nodes and a dependent of each kind.
    pub async fn new() -> Result<Self> {
        let (seed, shoot) = (server().await?, server().await?);
        for name in USERS {
            let mut user = seed_prober();
            user.name = name.to_owned();
            let more = "statefulsets.apps,stores.example.org,stores.example.org/scale";
            user.rules
                .get_or_insert_default()
                .push(Rule::new("get,list,watch,update,patch", more));
            seed.access().grant(name, user);
        }
        let store = seed.store();
        for kind in &KINDS {
            let mut object = deployment(NAMESPACE, kind.name, kind.replicas);
            (object["apiVersion"], object["kind"]) = (kind.api_version.into(), kind.kind.into());
            store.create(object)?;
        }
        let plan = MemoryShootPlan {
            namespace: NAMESPACE,
            deployments: &[],
            ..MemoryShootPlan::default()
        };
        let nodes = plan.furnish(store, &shoot)?;
        let ledger = WriteLedger::open(store);
        let kubelets = Kubelets::start(
            store,
            &[KINDS[0].resource, KINDS[1].resource, KINDS[2].resource],
            Duration::ZERO,
        );
        let folder = reaper::folder("kills")?;
        let dependents = KINDS.iter().map(|kind| {
            dependent(
                kind.api_version,
                kind.kind,
                kind.name,
                kind.levels.0,
                kind.levels.1,
            )
        });
        let config = ProberConfig {
            initial_delay: "0s",
            timeout: "4s",
            dependents: dependents.collect(),
            ..ProberConfig::default()
        };
        Ok(Self {
            seed,
            shoot,
            nodes,
            folder,
            config,
            ledger,
            _kubelets: kubelets,
        })
    }

    /// How a replica of the prober is started.
    pub fn prober(&self, user: &str, election: bool) -> Result<AgentStart> {
        let start = AgentStart::new(
            RunningAgent::Prober,
            &self.folder,
            user,
            &self.seed.kubeconfig(user),
            &self.config.text(),
        )?;
        let election = if election {
            &ELECTION[..]
        } else {
            &["--enable-leader-election=false"]
        };
        Ok(start.with(UNSERVED).with(election.iter().copied()))
    }

    /// Waits until every dependent is so.
    async fn all(&self, what: &str, so: impl Fn(&ScaledKind, &ReplicaState) -> bool) -> Result<()> {
        let reached = self.seed.store().wait_for(|store| {
            let right = |kind: &ScaledKind| {
                store
                    .get(kind.resource, NAMESPACE, kind.name)
                    .is_some_and(|object| so(kind, &ReplicaState::of(&object)))
            };
            KINDS.iter().all(right).then_some(())
        });
        timeout(PATIENCE, reached)
            .await
            .with_context(|| format!("not in time: {what}\n{}", self.ledger.lock().story))
    }

    /// Waits until all are held down, each with its memory.
    pub async fn held_down(&self) -> Result<()> {
        self.all("all held down", |kind, state| {
            state.is_held_down(&kind.replicas.to_string())
        })
        .await
    }

    /// Waits until all are up, with no trace of the prober.
    pub async fn free(&self) -> Result<()> {
        self.all("all free", |kind, state| state.is_free_at(kind.replicas))
            .await
    }

    /// Waits until the shoot has answered so many more probes.
    pub async fn looks(&self, count: usize) -> Result<()> {
        let answered = |record: &Record| record.path == LEASES && record.status == Some(200);
        let before = self.shoot.requests().count(answered);
        requests(&self.shoot, before + count, "the shoot is probed", answered).await
    }
}
