//! One shoot: its API server and nodes, and its control plane in a namespace of the seed.

pub mod acts;
pub mod pods;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api_server::{MemoryApi, Store};
use chrono::TimeDelta;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use testbed::gardener;
pub use testbed::gardener::{CA, KCM, MCM};
use testbed::renewers::{LeaseRenewers, LeaseWriter, stamp};
use tokio::time::Instant;

use crate::oracle::record::{NodeState, ShootRecord};
use crate::pace::{BEAT, GRACE, INITIAL_DELAY, LEASE_SECONDS};

pub const NODES: &str = "nodes";
pub const LEASES: &str = "leases.coordination.k8s.io";
pub const DEPLOYMENTS: &str = "deployments.apps";
pub const CLUSTERS: &str = "clusters.extensions.gardener.cloud";
pub const MACHINES: &str = "machines.machine.sapcloud.io";
/// A custom resource.
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

/// `kcm` is `kube-controller-manager`.
pub fn long(name: &str) -> &str {
    match name {
        "kcm" => KCM,
        "mcm" => MCM,
        "ca" => CA,
        name => name,
    }
}

/// A shoot.
pub struct SoakShoot {
    pub namespace: String,
    pub api: Arc<MemoryApi>,
    /// The seed's objects.
    pub seed: Store,
    /// Also written to by the stores' observers: never use a store while holding it.
    pub record: Arc<Mutex<ShootRecord>>,
    renewers: Mutex<LeaseRenewers<RecordedRenewals>>,
}

impl SoakShoot {
    /// A shoot without nodes, of which nothing is in the seed yet.
    pub fn new(namespace: String, api: MemoryApi, seed: Store, now: Instant) -> Self {
        let api = Arc::new(api);
        let record = Arc::new(Mutex::new(ShootRecord::new(now)));
        let renewals = RecordedRenewals {
            record: record.clone(),
            store: api.store().clone(),
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

    /// Notes what happens to it.
    pub fn note(&self, event: &str) {
        self.update_record(|record, now| record.note(now, event));
    }

    /// Changes what is known of some nodes, of all if none is named; of those that have left nothing
    /// is.
    pub fn change_nodes(&self, names: &str, change: impl Fn(&mut NodeState)) {
        for (name, node) in &mut self.record().nodes {
            if names.is_empty() || names.split(',').any(|named| named == name) {
                change(node);
            }
        }
    }

    /// The replicas that its owner wants of a dependent.
    pub fn wanted(&self, name: &str) -> i64 {
        self.record().wanted.get(name).copied().unwrap_or(1)
    }

    /// Creates all that Gardener puts into the seed for it, its Cluster last.
    pub fn furnish(&self, nodes: usize) -> Result<()> {
        self.seed.create(gardener::namespace(&self.namespace))?;
        for name in DEPENDENTS {
            self.create_dependent(name)?;
        }
        for number in 0..nodes {
            let phase = BEAT.mul_f64(number as f64 / nodes as f64);
            self.add_node(&format!("node-{number}"), phase)?;
        }
        self.make_pods()?;
        self.renew_token()?;
        self.publish()
    }

    /// From now on it is probed by another token; the others live on.
    fn renew_token(&self) -> Result<()> {
        let token = format!("soak-probe-token-{}", fastrand::u64(..));
        self.api.access().grant(&token, gardener::shoot_probe());
        self.record().tokens.push(token);
        self.write_secret(&self.kubeconfig())
    }

    /// A kubeconfig with its newest token.
    fn kubeconfig(&self) -> String {
        let token = self.record().tokens.last().cloned();
        self.api.kubeconfig(&token.unwrap_or_default())
    }

    /// Writes the Secret.
    fn write_secret(&self, kubeconfig: &str) -> Result<()> {
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

    /// A node joins: it renews from now on, and has a Machine.
    pub fn add_node(&self, name: &str, phase: Duration) -> Result<()> {
        let now = Instant::now();
        let lease = gardener::lease(name, LEASE_SECONDS, TimeDelta::zero());
        let node = gardener::node(name, "worker");
        self.api.store().apply(node)?;
        self.api.store().apply(lease)?;
        self.seed.apply(gardener::machine(&self.namespace, name))?;
        self.update_record(|record, _| {
            record.nodes.insert(name.to_owned(), NodeState::new(now));
            record.unsettle(now);
        });
        self.renewers.lock().join(name, phase);
        Ok(())
    }

    /// A node leaves, its Machine first.
    pub fn remove_node(&self, name: &str) -> Result<()> {
        self.update_record(|record, now| {
            record.nodes.remove(name);
            record.unsettle(now);
        });
        self.renewers.lock().leave(name);
        self.seed.delete(MACHINES, &self.namespace, name)?;
        self.api.store().delete(NODES, "", name)?;
        self.api.store().delete(LEASES, "kube-node-lease", name)?;
        Ok(())
    }
}

/// Renews the leases of a shoot's nodes, as far as their way and their API server let them, and
/// notes it.
#[derive(Clone)]
struct RecordedRenewals {
    record: Arc<Mutex<ShootRecord>>,
    store: Store,
}

impl LeaseWriter for RecordedRenewals {
    async fn renew(&self, name: &str) -> bool {
        {
            let mut record = self.record.lock();
            if record.is_away() {
                return false;
            }
            // Noted before, since the watchdog may see it and act on it before we go on.
            match record.nodes.get_mut(name) {
                Some(node) if !node.cut => node.renewed = Instant::now(),
                _ => return true,
            }
        }
        let renewal = json!({"spec": {"renewTime": stamp(TimeDelta::zero())}});
        let written = self.store.patch(LEASES, "kube-node-lease", name, &renewal);
        written.is_ok()
    }
}
