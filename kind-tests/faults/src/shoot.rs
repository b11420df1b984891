//! One shoot: its API server and nodes, and its control plane in a namespace of the seed.

pub mod pods;
pub mod real;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api_server::{MemoryApi, Store};
use chrono::TimeDelta;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use testbed::gardener::{self, PROBE};
pub use testbed::gardener::{CA, KCM, MCM};
use testbed::objects::name;
use testbed::renewers::{LeaseRenewers, LeaseWriter, stamp};
use testbed::shoot;
use tokio::time::{Instant, timeout};

use self::real::Real;
use crate::oracle::record::{NodeState, ShootRecord};
use crate::pace::{BEAT, GRACE, INITIAL_DELAY, LEASE_SECONDS};

pub const DEPLOYMENTS: &str = "deployments.apps";
pub const CLUSTERS: &str = "clusters.extensions.gardener.cloud";
pub const MACHINES: &str = "machines.machine.sapcloud.io";
/// A custom resource that is scaled by a request of its own.
pub const STORE: &str = "store";
pub const STORES: &str = "stores.example.org";
/// What Gardener lets the prober scale, and that.
pub const DEPENDENTS: [&str; 4] = [KCM, MCM, CA, STORE];

/// The resource of a dependent.
pub fn resource_of(dependent: &str) -> &'static str {
    if dependent == STORE {
        STORES
    } else {
        DEPLOYMENTS
    }
}

/// The shoot's own API server.
pub enum ShootApi {
    /// In memory.
    Memory(MemoryApi),
    /// A real one, behind a proxy.
    Real(Box<Real>),
}

/// A resource of the shoot: its name, its namespace, and its collection on a real API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeResource {
    pub name: &'static str,
    namespace: &'static str,
    collection: &'static str,
}

pub const NODES: NodeResource = NodeResource {
    name: "nodes",
    namespace: "",
    collection: "/api/v1/nodes",
};
pub const LEASES: NodeResource = NodeResource {
    name: "leases.coordination.k8s.io",
    namespace: "kube-node-lease",
    collection: shoot::LEASES,
};

/// Nodes and their leases, past all that is between the watchdog and the API server; and its
/// credentials.
impl ShootApi {
    async fn create(&self, resource: NodeResource, object: Value) -> Result<()> {
        match self {
            Self::Memory(api) => drop(api.store().apply(object)?),
            Self::Real(real) => {
                real.plane.api().create(&object).await?;
                // The status of a new object does not count.
                if !object["status"].is_null() {
                    let patch = json!({"status": object["status"]});
                    self.patch(resource, name(&object), &patch).await?;
                }
            }
        }
        Ok(())
    }

    /// Changes an object; its status with a patch of its own.
    pub async fn patch(&self, resource: NodeResource, name: &str, patch: &Value) -> Result<()> {
        let NodeResource {
            name: kind,
            namespace,
            collection,
        } = resource;
        match self {
            Self::Memory(api) => drop(api.store().patch(kind, namespace, name, patch)?),
            Self::Real(real) => {
                let is_status = !patch["status"].is_null();
                let subresource = if is_status { "/status" } else { "" };
                let path = format!("{collection}/{name}{subresource}");
                real.plane.api().merge(&path, patch).await?;
            }
        }
        Ok(())
    }

    async fn delete(&self, resource: NodeResource, name: &str) -> Result<()> {
        let store = match self {
            Self::Memory(api) => api.store(),
            Self::Real(real) => {
                let path = format!("{}/{name}", resource.collection);
                return real.plane.api().delete(&path).await;
            }
        };
        store.delete(resource.name, resource.namespace, name)?;
        Ok(())
    }

    /// A token for the prober, beside those that there are.
    pub async fn token(&self) -> Result<String> {
        match self {
            Self::Memory(api) => {
                let token = format!("soak-probe-token-{}", fastrand::u64(..));
                api.access().grant(&token, gardener::shoot_probe());
                Ok(token)
            }
            Self::Real(real) => real.plane.api().token("kube-system", PROBE).await,
        }
    }

    /// Makes a token worthless; of a real API server all that there are.
    pub async fn revoke(&self, token: &str) -> Result<()> {
        match self {
            Self::Memory(api) => api.access().revoke(token),
            Self::Real(real) => {
                let account = format!("/api/v1/namespaces/kube-system/serviceaccounts/{PROBE}");
                real.plane.api().delete(&account).await?;
                real.plane
                    .api()
                    .create_all(&gardener::shoot_access())
                    .await?;
            }
        }
        Ok(())
    }
}

/// A shoot.
pub struct SoakShoot {
    pub namespace: String,
    pub api: Arc<ShootApi>,
    /// The seed's objects.
    pub seed: Store,
    /// Also written to by the stores' observers: never use a store while holding it.
    pub record: Arc<Mutex<ShootRecord>>,
    renewers: Mutex<LeaseRenewers<RecordedRenewals>>,
}

impl SoakShoot {
    /// A shoot without nodes, of which nothing is in the seed yet.
    pub fn new(namespace: String, api: ShootApi, seed: Store, now: Instant) -> Self {
        let api = Arc::new(api);
        let record = Arc::new(Mutex::new(ShootRecord::new(now)));
        let renewals = RecordedRenewals {
            record: record.clone(),
            api: api.clone(),
        };
        Self {
            namespace,
            api,
            seed,
            record,
            renewers: Mutex::new(LeaseRenewers::new(renewals, BEAT)),
        }
    }

    /// Its record.
    pub fn record(&self) -> MutexGuard<'_, ShootRecord> {
        self.record.lock()
    }

    /// Changes what is known of it, at this moment.
    pub fn update_record(&self, change: impl FnOnce(&mut ShootRecord, Instant)) {
        change(&mut self.record(), Instant::now());
    }

    /// Notes what happens to it, and changes what is known of it.
    pub fn happens(
        &self,
        event: impl Into<String>,
        change: impl FnOnce(&mut ShootRecord, Instant),
    ) {
        self.update_record(|record, now| {
            record.note(now, event);
            change(record, now);
        });
    }

    /// Notes what happens to it.
    pub fn note(&self, event: impl Into<String>) {
        self.happens(event, |_, _| ());
    }

    /// Changes what is known of some nodes; of those that have left nothing is.
    pub fn change_nodes(&self, names: &[String], change: impl Fn(&mut NodeState, Instant)) {
        self.update_record(|record, now| {
            let nodes = record.nodes.iter_mut();
            let named = nodes.filter(|(name, _)| names.contains(name));
            named.for_each(|(_, node)| change(node, now));
        });
    }

    /// The replicas that its owner wants of a dependent.
    pub fn wanted(&self, name: &str) -> i64 {
        self.record().wanted.get(name).copied().unwrap_or(1)
    }

    /// Creates all that Gardener puts into the seed for it, but the Cluster.
    pub async fn furnish(&self, nodes: usize) -> Result<()> {
        self.seed.create(gardener::namespace(&self.namespace))?;
        for name in DEPENDENTS {
            self.create_dependent(name)?;
        }
        for number in 0..nodes {
            let phase = BEAT.mul_f64(number as f64 / nodes as f64);
            self.add_node(&format!("node-{number}"), phase).await?;
        }
        self.make_pods()?;
        self.write_token(self.api.token().await?)
    }

    /// A kubeconfig with the token that it is probed by.
    pub fn kubeconfig(&self) -> String {
        let token = self.record().token.clone();
        match &*self.api {
            ShootApi::Memory(api) => api.kubeconfig(&token),
            ShootApi::Real(real) => {
                let url = format!("https://{}", real.proxy.address());
                real.plane.kubeconfig(&url, &token)
            }
        }
    }

    /// From now on it is probed by this token.
    pub fn write_token(&self, token: String) -> Result<()> {
        self.record().token = token;
        self.write_secret(&self.kubeconfig())
    }

    /// Writes the Secret.
    pub fn write_secret(&self, kubeconfig: &str) -> Result<()> {
        let secret = gardener::probe_secret(&self.namespace, kubeconfig);
        self.seed.apply(secret)?;
        Ok(())
    }

    /// Writes the Cluster for the first time, or as it was at first.
    pub fn publish(&self) -> Result<()> {
        let grace = format!("{}s", GRACE.as_secs());
        let cluster = gardener::cluster(&self.namespace, Some(&grace));
        self.seed.apply(cluster)?;
        self.update_record(|record, now| record.watched_from = now + INITIAL_DELAY);
        Ok(())
    }

    /// Changes the embedded shoot.
    pub fn change(&self, change: impl FnOnce(&mut Value)) -> Result<()> {
        self.seed.update(CLUSTERS, "", &self.namespace, |cluster| {
            change(&mut cluster["spec"]["shoot"])
        })?;
        Ok(())
    }

    /// Creates a dependent as its owner does.
    pub fn create_dependent(&self, name: &str) -> Result<()> {
        let mut object = gardener::deployment(&self.namespace, name, self.wanted(name));
        if name == STORE {
            (object["apiVersion"], object["kind"]) = (json!("example.org/v1"), json!("Store"));
        }
        self.seed.create(object)?;
        Ok(())
    }

    /// Changes a dependent as somebody else would; one that is gone stays so.
    pub fn change_dependent(&self, name: &str, change: impl FnOnce(&mut Value)) -> Option<Value> {
        let resource = resource_of(name);
        let changed = self.seed.update(resource, &self.namespace, name, change);
        changed.ok()
    }

    /// Takes all dependents to 0, whatever they carry, or back.
    pub fn scale_all(&self, up: bool) {
        for name in DEPENDENTS {
            let replicas = if up { self.wanted(name) } else { 0 };
            self.change_dependent(name, |object| object["spec"]["replicas"] = json!(replicas));
        }
    }

    /// A node joins: it renews from now on, and has a Machine.
    pub async fn add_node(&self, name: &str, phase: Duration) -> Result<()> {
        let now = Instant::now();
        let lease = gardener::lease(name, LEASE_SECONDS, TimeDelta::zero());
        let node = gardener::node(name, "worker");
        self.api.create(NODES, node).await?;
        self.api.create(LEASES, lease).await?;
        self.seed.apply(gardener::machine(&self.namespace, name))?;
        self.update_record(|record, _| {
            record.nodes.insert(name.to_owned(), NodeState::new(now));
            record.unsettle(now);
        });
        self.renewers.lock().join(name, phase);
        Ok(())
    }

    /// A node leaves, its Machine first.
    pub async fn remove_node(&self, name: &str) -> Result<()> {
        self.update_record(|record, now| {
            record.nodes.remove(name);
            record.unsettle(now);
        });
        self.renewers.lock().leave(name);
        self.seed.delete(MACHINES, &self.namespace, name)?;
        self.api.delete(NODES, name).await?;
        self.api.delete(LEASES, name).await
    }
}

/// Renews the leases of a shoot's nodes, as far as their way and their API server let them, and
/// notes it.
#[derive(Clone)]
struct RecordedRenewals {
    record: Arc<Mutex<ShootRecord>>,
    api: Arc<ShootApi>,
}

impl LeaseWriter for RecordedRenewals {
    /// By the clock in the record, which drifts too.
    async fn renew(&self, name: &str) -> bool {
        let (ahead, before) = {
            let mut record = self.record.lock();
            if record.is_away() {
                return false;
            }
            let Some(node) = record.nodes.get_mut(name) else {
                return true;
            };
            node.clock.advance();
            if node.cut {
                return true;
            }
            // Noted before, since the watchdog may see it and act on it before we go on.
            let before = std::mem::replace(&mut node.renewed, Instant::now());
            (node.clock.stamp(), before)
        };
        // A node that leaves at this moment, or an API server that does not answer: it is not
        // renewed then.
        let renewal = json!({"spec": {"renewTime": stamp(ahead)}});
        let written = timeout(BEAT, self.api.patch(LEASES, name, &renewal)).await;
        let is_written = written.is_ok_and(|written| written.is_ok());
        if !is_written && let Some(node) = self.record.lock().nodes.get_mut(name) {
            node.renewed = before;
        }
        is_written
    }
}
