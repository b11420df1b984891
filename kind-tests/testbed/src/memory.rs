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
    /// Time between renewals of a node; a kubelet takes 10 s.
    pub beat: Duration,
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
            beat: Duration::from_millis(300),
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
        let mut nodes = MemoryNodes::new(api.store().clone(), self.beat);
        // As kubelets have it, in whole seconds.
        let seconds = (self.beat * 4).as_secs().max(4);
        for at in 0..self.nodes {
            let name = format!("node-{at}");
            // Each renews at a phase of its own, as if the renewals had been going on before: the first
            // one due was renewed nearly a beat ago.
            let phase = self.beat.mul_f64(at as f64 / self.nodes as f64);
            let age = TimeDelta::from_std(self.beat.saturating_sub(phase)).unwrap_or_default();
            api.store().create(node(&name, "worker"))?;
            api.store().create(lease(&name, seconds, -age))?;
            nodes.join(&name, phase);
            seed.create(gardener::machine(self.namespace, &name))?;
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

/// Nodes with Leases in `kube-node-lease`. Dropping it stops the renewals; the objects stay.
pub type MemoryNodes = LeaseRenewers<Store>;

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
