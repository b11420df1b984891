//! A seed and a shoot in memory, nodes that renew, stand-ins for kubelets, and a folder for the processes.

use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

use anyhow::{Context, Result};
use testbed::agent::{Kind as Agent, Start};
use testbed::api::{MemoryApi, Options, Record, Resource, Rule};
use testbed::authority::Authority;
pub use testbed::gardener::{CA, KCM, MCM};
use testbed::gardener::{deployment, seed_prober};
use testbed::kubelets::Kubelets;
use testbed::leash;
use testbed::memory::{Nodes, ShootPlan};
use testbed::prober::{ProberConfig, dependent};
use testbed::seed::Dependent;
use tokio::time::timeout;

use crate::ledger::Ledger;
use crate::process::UNSERVED;

pub const NAMESPACE: &str = "shoot--p--s";
/// The tokens of two replicas, with the same rights.
pub const USERS: [&str; 2] = ["first", "second"];
/// Far more than anything here takes, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(150);
/// How often a node renews its lease.
pub const BEAT: Duration = Duration::from_millis(300);
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A kind of dependents: full name, apiVersion, kind, name, replicas, levels up and down.
#[derive(Clone, Copy)]
pub struct Kind {
    pub resource: &'static str,
    api_version: &'static str,
    kind: &'static str,
    pub name: &'static str,
    pub replicas: i64,
    levels: (i64, i64),
    /// Changes of an outage and its end.
    pub changes: usize,
}

impl Kind {
    /// One for the annotations and one for the scale; otherwise one write does both.
    pub fn takes_two_requests(&self) -> bool {
        self.changes == 4
    }
}

const fn plain(name: &'static str, replicas: i64, levels: (i64, i64)) -> Kind {
    Kind { resource: "deployments.apps", api_version: "apps/v1", kind: "Deployment", name, replicas, levels, changes: 2 }
}

/// What Gardener configures.
pub const DEPLOYMENTS: [Kind; 3] = [plain(KCM, 2, (0, 1)), plain(MCM, 1, (1, 0)), plain(CA, 3, (2, 0))];
/// The least that is an outage.
pub const ONE: [Kind; 1] = [plain(KCM, 2, (0, 0))];
/// One of each kind that is scaled in a way of its own: the last one takes two requests in each direction.
pub const KINDS: [Kind; 3] = [
    plain(KCM, 2, (0, 1)),
    Kind { resource: "statefulsets.apps", kind: "StatefulSet", name: "etcd-main", ..plain("", 3, (1, 0)) },
    Kind {
        resource: "stores.example.org",
        api_version: "example.org/v1",
        kind: "Store",
        name: "store",
        changes: 4,
        ..plain("", 5, (2, 0))
    },
];

pub struct World {
    pub seed: MemoryApi,
    pub shoot: MemoryApi,
    pub nodes: Nodes,
    pub folder: PathBuf,
    config: ProberConfig,
    pub ledger: Ledger,
    pub kinds: &'static [Kind],
    _kubelets: Kubelets,
}

/// A server in memory that knows one more kind, with a scale subresource.
pub async fn server() -> Result<MemoryApi> {
    static PROVIDER: Once = Once::new();
    // Another test of this process may have installed it already.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut store = Resource::custom("example.org/v1", "stores", "Store").with_status();
    store = store.with_scale(".spec.replicas", ".status.replicas");
    MemoryApi::start(&Authority::new()?, Options { resources: vec![store], ..Options::default() }).await
}

impl World {
    /// A healthy shoot with three nodes and these dependents.
    pub async fn new(kinds: &'static [Kind]) -> Result<Self> {
        let (seed, shoot) = (server().await?, server().await?);
        for name in USERS {
            let mut user = seed_prober();
            user.name = name.to_owned();
            let more = "statefulsets.apps,stores.example.org,stores.example.org/scale";
            user.rules.get_or_insert_default().push(Rule::new("get,list,watch,update,patch", more));
            seed.access().grant(name, user);
        }
        let store = seed.store();
        for kind in kinds {
            let mut object = deployment(NAMESPACE, kind.name, kind.replicas);
            (object["apiVersion"], object["kind"]) = (kind.api_version.into(), kind.kind.into());
            store.create(object)?;
        }
        let plan = ShootPlan { namespace: NAMESPACE, deployments: &[], ..ShootPlan::default() };
        let nodes = plan.furnish(store, &shoot)?;
        let ledger = Ledger::open(store, kinds);
        let kubelets = Kubelets::start(store, &["deployments.apps", "statefulsets.apps", "stores.example.org"], Duration::ZERO);
        let folder = leash::folder("kills")?;
        let dependents = kinds.iter().map(|kind| dependent(kind.api_version, kind.kind, kind.name, kind.levels.0, kind.levels.1));
        let config =
            ProberConfig { initial_delay: "0s", timeout: "4s", dependents: dependents.collect(), ..ProberConfig::default() };
        Ok(Self { seed, shoot, nodes, folder, config, ledger, kinds, _kubelets: kubelets })
    }

    /// Lets one dependent wait before it goes down. Before a process starts.
    pub fn delay_scale_down(&mut self, name: &str, delay: &str) -> Result<()> {
        let dependent = self.config.dependents.iter_mut().find(|dependent| dependent["ref"]["name"] == name);
        dependent.context("no such dependent")?["scaleDown"]["initialDelay"] = delay.into();
        Ok(())
    }

    /// How a replica of the prober is started.
    pub fn prober(&self, user: &str, args: &[&str]) -> Result<Start> {
        let start = Start::new(Agent::Prober, &self.folder, user, &self.seed.kubeconfig(user), &self.config.text())?;
        Ok(start.with(UNSERVED).with(args.iter().copied()))
    }

    /// Whether a dependent is at its usual replicas now.
    pub fn up(&self, name: &str) -> bool {
        let kind = self.kinds.iter().find(|kind| kind.name == name);
        let object = kind.and_then(|kind| self.seed.store().get(kind.resource, NAMESPACE, name));
        object.is_some_and(|object| kind.is_some_and(|kind| object["spec"]["replicas"] == kind.replicas))
    }

    /// Waits until every dependent is so.
    async fn all(&self, what: &str, so: impl Fn(&Kind, &Dependent) -> bool) -> Result<()> {
        let reached = self.seed.store().wait_for(|store| {
            let right = |kind: &Kind| {
                store.get(kind.resource, NAMESPACE, kind.name).is_some_and(|object| so(kind, &Dependent::of(&object)))
            };
            self.kinds.iter().all(right).then_some(())
        });
        timeout(PATIENCE, reached).await.with_context(|| format!("not in time: {what}\n{}", self.ledger.story()))
    }

    /// Waits until all are held down, each with its memory.
    pub async fn held_down(&self) -> Result<()> {
        self.all("all held down", |kind, state| state.is_held_down(&kind.replicas.to_string())).await
    }

    /// Waits until all are up, with no trace of the prober.
    pub async fn free(&self) -> Result<()> {
        self.all("all free", |kind, state| state.is_free_at(kind.replicas)).await
    }

    /// Waits until the shoot has answered so many more probes.
    pub async fn looks(&self, count: usize) -> Result<()> {
        let answered = |record: &&Record| record.path == LEASES && record.status == Some(200);
        let before = self.shoot.requests().all().iter().filter(answered).count();
        let more = self.shoot.requests().wait_for(|all| (all.iter().filter(answered).count() >= before + count).then_some(()));
        timeout(PATIENCE, more).await.context("the shoot is not probed")
    }

    /// The changes of each dependent in an outage and its end.
    pub fn intended(&self) -> Vec<(&'static str, usize)> {
        self.kinds.iter().map(|kind| (kind.name, kind.changes)).collect()
    }
}
