//! One shoot: its API server and nodes, and its control plane in a namespace of the seed.

pub mod away;
pub mod real;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::{Value, json};
pub use testbed::api::gardener::{CA, KCM, MCM};
use testbed::api::{Hearts, Leases, MemoryApi, Store, gardener, stamp};
use tokio::time::{Instant, timeout};

use self::real::Real;
use crate::pace::{BEAT, GRACE, INITIAL_DELAY, LEASE_SECONDS};
use crate::record::{Node, Record};

pub const DEPLOYMENTS: &str = "deployments.apps";
pub const CLUSTERS: &str = "clusters.extensions.gardener.cloud";
pub const MACHINES: &str = "machines.machine.sapcloud.io";
pub const LEASES: &str = "leases.coordination.k8s.io";

/// The shoot's own API server.
pub enum Api {
    /// In memory.
    Memory(MemoryApi),
    /// A real one, behind a relay.
    Real(Box<Real>),
}

/// A shoot.
pub struct Shoot {
    pub namespace: String,
    pub api: Arc<Api>,
    /// The seed's objects.
    pub seed: Store,
    /// Also written to by the stores' observers: never use a store while holding it.
    pub record: Arc<Mutex<Record>>,
    /// The replicas that its owner wants.
    pub wanted: Mutex<BTreeMap<&'static str, i64>>,
    hearts: Mutex<Hearts<Renewals>>,
}

impl Shoot {
    /// A shoot whose owner wants these replicas, and without nodes.
    pub fn new(namespace: String, api: Api, seed: Store, wanted: BTreeMap<&'static str, i64>, now: Instant) -> Self {
        let (api, record) = (Arc::new(api), Arc::new(Mutex::new(Record::new(namespace.clone(), now))));
        let hearts = Mutex::new(Hearts::new(Renewals { record: record.clone(), api: api.clone() }, BEAT));
        Self { namespace, api, seed, record, wanted: Mutex::new(wanted), hearts }
    }

    fn hearts(&self) -> MutexGuard<'_, Hearts<Renewals>> {
        self.hearts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its record.
    pub fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what happens to it.
    pub fn note(&self, event: impl Into<String>) {
        self.record().note(Instant::now(), event);
    }

    /// Whether it is the one with a real control plane.
    pub fn is_real(&self) -> bool {
        matches!(*self.api, Api::Real(_))
    }

    /// The replicas that its owner wants of a dependent.
    pub fn wanted(&self, name: &str) -> i64 {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied().unwrap_or(1)
    }

    /// Its owner wants others.
    pub fn want(&self, name: &'static str, replicas: i64) {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).insert(name, replicas);
    }

    /// All nodes lose their way to the API server, or find it again.
    pub fn cut_all(&self, cut: bool) {
        self.record().nodes.values_mut().for_each(|node| node.cut = cut);
    }

    /// Creates all that Gardener puts into the seed for it, but the Cluster.
    pub async fn furnish(&self, nodes: usize, token: &str) -> Result<()> {
        self.seed.create(gardener::namespace(&self.namespace))?;
        for name in [KCM, MCM, CA] {
            self.seed.create(gardener::deployment(&self.namespace, name, self.wanted(name)))?;
        }
        for number in 0..nodes {
            let phase = BEAT.mul_f64(number as f64 / nodes as f64);
            self.add_node(&format!("node-{number}"), phase).await?;
        }
        self.write_secret(&self.kubeconfig(token))
    }

    /// A kubeconfig for it.
    pub fn kubeconfig(&self, token: &str) -> String {
        match &*self.api {
            Api::Memory(api) => api.kubeconfig(token),
            Api::Real(real) => real.kubeconfig(token),
        }
    }

    /// Writes the Secret.
    pub fn write_secret(&self, kubeconfig: &str) -> Result<()> {
        self.seed.apply(gardener::probe_secret(&self.namespace, kubeconfig))?;
        Ok(())
    }

    /// The Cluster as it is at rest.
    pub fn cluster(&self) -> Value {
        gardener::cluster(&self.namespace, Some(&format!("{}s", GRACE.as_secs())))
    }

    /// Writes the Cluster for the first time, or anew.
    pub fn publish(&self) -> Result<()> {
        self.seed.apply(self.cluster())?;
        self.record().watched_from = Instant::now() + INITIAL_DELAY;
        Ok(())
    }

    /// Changes the embedded shoot.
    pub fn change(&self, change: impl FnOnce(&mut Value)) -> Result<()> {
        self.seed.update(CLUSTERS, "", &self.namespace, |cluster| change(&mut cluster["spec"]["shoot"]))?;
        Ok(())
    }

    /// Changes a Deployment as somebody else would; one that is gone stays so.
    pub fn change_deployment(&self, name: &str, change: impl FnOnce(&mut Value)) -> Option<Value> {
        self.seed.update(DEPLOYMENTS, &self.namespace, name, change).ok()
    }

    /// A node joins: it renews from now on, and has a Machine.
    pub async fn add_node(&self, name: &str, phase: Duration) -> Result<()> {
        let (node, lease) = (gardener::node(name, "worker"), gardener::lease(name, LEASE_SECONDS, TimeDelta::zero()));
        let now = Instant::now();
        match &*self.api {
            Api::Memory(api) => {
                api.store().apply(node)?;
                api.store().apply(lease)?;
            }
            Api::Real(real) => real.add_node(&node, &lease).await?,
        }
        self.seed.apply(gardener::machine(&self.namespace, name))?;
        let mut record = self.record();
        record.nodes.insert(name.to_owned(), Node::new(now));
        record.unsettle(now);
        drop(record);
        self.hearts().join(name, phase, TimeDelta::zero());
        Ok(())
    }

    /// A node leaves, its Machine first.
    pub async fn remove_node(&self, name: &str) -> Result<()> {
        {
            let mut record = self.record();
            record.nodes.remove(name);
            record.unsettle(Instant::now());
        }
        self.hearts().leave(name);
        self.seed.delete(MACHINES, &self.namespace, name)?;
        match &*self.api {
            Api::Memory(api) => {
                api.store().delete("nodes", "", name)?;
                api.store().delete(LEASES, "kube-node-lease", name)?;
            }
            Api::Real(real) => real.remove_node(name).await?,
        }
        Ok(())
    }

    /// Changes a node object.
    pub async fn patch_node(&self, name: &str, patch: &Value) -> Result<()> {
        match &*self.api {
            Api::Memory(api) => drop(api.store().patch("nodes", "", name, patch)?),
            Api::Real(real) => real.patch_node(name, patch).await?,
        }
        Ok(())
    }
}

/// Renews the leases of a shoot's nodes, as far as their way and their API server let them, and notes it.
#[derive(Clone)]
struct Renewals {
    record: Arc<Mutex<Record>>,
    api: Arc<Api>,
}

impl Renewals {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, name: &str, stamp: String) -> Result<()> {
        match &*self.api {
            Api::Memory(api) => {
                api.store().update(LEASES, "kube-node-lease", name, |lease| lease["spec"]["renewTime"] = json!(stamp))?;
            }
            Api::Real(real) => real.renew(name, &stamp).await?,
        }
        Ok(())
    }
}

impl Leases for Renewals {
    /// By the clock in the record, which drifts too.
    async fn renew(&self, name: &str, _: TimeDelta) -> bool {
        let (ahead, before) = {
            let mut record = self.record();
            if record.is_away() {
                return false;
            }
            let Some(node) = record.nodes.get_mut(name) else { return true };
            node.clock.go_on();
            if node.cut {
                return true;
            }
            // Noted before, since the watchdog may see it and act on it before we go on.
            (node.clock.stamp(), std::mem::replace(&mut node.renewed, Instant::now()))
        };
        // A node that leaves at this moment, or an API server that does not answer: it is not renewed then.
        let written = timeout(BEAT, self.write(name, stamp(ahead))).await.is_ok_and(|written| written.is_ok());
        if !written && let Some(node) = self.record().nodes.get_mut(name) {
            node.renewed = before;
        }
        written
    }
}
