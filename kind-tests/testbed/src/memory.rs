//! Shoots whose API server is in memory.

use std::time::Duration;

use api_server::{ApiError, MemoryApi, Store};
use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::gardener::{self, CA, KCM, MCM, lease, node};
use crate::renewers::{LeaseRenewers, LeaseWriter, stamp};

/// The token by which a shoot is probed.
const TOKEN: &str = "probe";

/// What a shoot is made with. The default has a short grace, for tests.
#[derive(Clone, Debug)]
pub struct MemoryShootPlan<'a> {
    /// Its namespace in the seed.
    pub namespace: &'a str,
    /// How many nodes it has.
    pub nodes: usize,
    /// How they renew.
    pub renewer: LeaseRenewer,
    /// `nodeMonitorGracePeriod`, Kubernetes' default if `None`.
    pub grace: Option<&'a str>,
    /// Deployments and their replicas.
    pub deployments: &'a [(&'a str, i64)],
}

impl Default for MemoryShootPlan<'_> {
    fn default() -> Self {
        Self {
            namespace: "shoot--p--s",
            nodes: 3,
            renewer: LeaseRenewer {
                beat: Duration::from_millis(300),
                lease_seconds: 4,
            },
            grace: Some("4s"),
            deployments: &[(KCM, 1), (MCM, 1), (CA, 1)],
        }
    }
}

impl MemoryShootPlan<'_> {
    /// Makes it out of an API server as Gardener leaves a healthy shoot: the probe's right to ask
    /// it, its nodes, and what belongs to it in the seed, its Cluster last.
    ///
    /// # Errors
    /// When one of its objects is there already.
    pub fn furnish(&self, seed: &Store, api: &MemoryApi) -> Result<MemoryNodes, ApiError> {
        api.access().grant(TOKEN, gardener::shoot_probe());
        let nodes = MemoryNodes::start(api.store(), "node", self.nodes, self.renewer.clone());
        for node in nodes.names() {
            seed.create(gardener::machine(self.namespace, node))?;
        }
        for (name, replicas) in self.deployments {
            seed.create(gardener::deployment(self.namespace, name, *replicas))?;
        }
        let kubeconfig = api.kubeconfig(TOKEN);
        seed.create(gardener::probe_secret(self.namespace, &kubeconfig))?;
        seed.create(gardener::cluster(self.namespace, self.grace))?;
        Ok(nodes)
    }
}

/// How nodes renew their leases.
#[derive(Clone, Debug)]
pub struct LeaseRenewer {
    /// Time between renewals; a kubelet takes a quarter of the lease duration, 10 s.
    pub beat: Duration,
    /// What the lease says about its duration, in seconds; 40 in Kubernetes.
    pub lease_seconds: u64,
}

impl Default for LeaseRenewer {
    fn default() -> Self {
        Self {
            beat: Duration::from_secs(10),
            lease_seconds: 40,
        }
    }
}

/// Nodes with Leases in `kube-node-lease`, each renewed at a phase of its own: node i of n begins i
/// beats / n late.
///
/// Dropping it stops the renewals; the objects stay.
pub type MemoryNodes = LeaseRenewers<Store>;

impl MemoryNodes {
    /// Creates `count` nodes named `PREFIX-0`, `PREFIX-1`, ... with a fresh lease each, and starts
    /// their renewers on the current runtime.
    pub fn start(store: &Store, prefix: &str, count: usize, renewer: LeaseRenewer) -> Self {
        let mut nodes = Self::new(store.clone(), renewer.beat);
        for at in 0..count {
            let name = format!("{prefix}-{at}");
            let phase = renewer.beat.mul_f64(at as f64 / count as f64);
            // As if the renewals had been going on before: the first one due was renewed nearly a
            // beat ago.
            let age = TimeDelta::from_std(renewer.beat.saturating_sub(phase)).unwrap_or_default();
            // Only a kind that is not registered could be refused, and both are built in.
            store.apply(node(&name, "worker")).ok();
            store.apply(lease(&name, renewer.lease_seconds, -age)).ok();
            nodes.join(&name, phase);
        }
        nodes
    }
}

impl LeaseWriter for Store {
    async fn renew(&self, node: &str) -> bool {
        let (leases, namespace) = ("leases.coordination.k8s.io", "kube-node-lease");
        let renewed = json!(stamp(TimeDelta::zero()));
        let renew = |lease: &mut Value| lease["spec"]["renewTime"] = renewed;
        // A lease that a test has deleted stays deleted.
        self.update(leases, namespace, node, renew).ok();
        true
    }
}
