//! One shoot: its API server and nodes, and its control plane in a namespace of the seed.

pub mod away;
pub mod real;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use chrono::{SecondsFormat, TimeDelta, Utc};
use memory_api::{MemoryApi, Store, gardener};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use self::real::Real;
use crate::pace::{BEAT, GRACE, INITIAL_DELAY, LEASE_SECONDS};
use crate::record::{Node, Record};

pub const KCM: &str = "kube-controller-manager";
pub const MCM: &str = "machine-controller-manager";
pub const CA: &str = "cluster-autoscaler";
pub const DEPLOYMENTS: &str = "deployments.apps";
pub const CLUSTERS: &str = "clusters.extensions.gardener.cloud";
pub const MACHINES: &str = "machines.machine.sapcloud.io";
pub const LEASES: &str = "leases.coordination.k8s.io";

/// How finely nodes renew at their phases.
const TICK: Duration = Duration::from_millis(50);

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
    pub api: Api,
    /// The seed's objects.
    pub seed: Store,
    /// Also written to by the stores' observers: never use a store while holding it.
    pub record: Arc<Mutex<Record>>,
    /// The replicas that its owner wants.
    pub wanted: Mutex<std::collections::BTreeMap<&'static str, i64>>,
}

impl Shoot {
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
        matches!(self.api, Api::Real(_))
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
        match &self.api {
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
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"worker.gardener.cloud/pool": "worker"}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": stamp(TimeDelta::zero())}});
        let now = Instant::now();
        match &self.api {
            Api::Memory(api) => {
                api.store().apply(node)?;
                api.store().apply(lease)?;
            }
            Api::Real(real) => real.add_node(&node, &lease).await?,
        }
        self.seed.apply(gardener::machine(&self.namespace, name))?;
        let mut record = self.record();
        record.nodes.insert(name.to_owned(), Node::new(now, phase));
        record.unsettle(now);
        Ok(())
    }

    /// A node leaves, its Machine first.
    pub async fn remove_node(&self, name: &str) -> Result<()> {
        {
            let mut record = self.record();
            record.nodes.remove(name);
            record.unsettle(Instant::now());
        }
        self.seed.delete(MACHINES, &self.namespace, name)?;
        match &self.api {
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
        match &self.api {
            Api::Memory(api) => drop(api.store().patch("nodes", "", name, patch)?),
            Api::Real(real) => real.patch_node(name, patch).await?,
        }
        Ok(())
    }

    async fn renew(&self, name: &str, skew: TimeDelta) -> Result<()> {
        let stamp = stamp(skew);
        match &self.api {
            Api::Memory(api) => {
                api.store().update(LEASES, "kube-node-lease", name, |lease| lease["spec"]["renewTime"] = json!(stamp))?;
            }
            Api::Real(real) => real.renew(name, &stamp).await?,
        }
        Ok(())
    }

    /// Lets the nodes renew their leases, each at its phase, for ever.
    pub async fn beat(&self) {
        loop {
            sleep(TICK).await;
            let now = Instant::now();
            let due: Vec<(String, TimeDelta)> = {
                let mut record = self.record();
                let away = record.is_away();
                let due = record.nodes.iter_mut().filter(|(_, node)| node.due <= now);
                due.filter_map(|(name, node)| {
                    while node.due <= now {
                        node.due += BEAT;
                        node.clock.go_on();
                    }
                    (!node.cut && !away).then(|| (name.clone(), node.clock.stamp()))
                })
                .collect()
            };
            for (name, skew) in due {
                // Noted before, since the watchdog may see it and act on it before we go on.
                let renewed = |at| self.record().nodes.get_mut(&name).map(|node| std::mem::replace(&mut node.renewed, at));
                let before = renewed(Instant::now());
                // A node that leaves at this moment, or an API server that does not answer: it is not renewed then.
                if self.renew(&name, skew).await.is_err()
                    && let Some(before) = before
                {
                    renewed(before);
                }
            }
        }
    }
}

fn stamp(skew: TimeDelta) -> String {
    (Utc::now() + skew).to_rfc3339_opts(SecondsFormat::Micros, true)
}
