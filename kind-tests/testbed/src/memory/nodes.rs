//! Nodes in a store, with Leases that are kept fresh until their way to the API server is cut.

use std::time::Duration;

use api_server::Store;
use chrono::TimeDelta;
use serde_json::json;

use crate::gardener::{lease, node};
use crate::renewers::{LeaseRenewers, LeaseWriter, stamp};

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
            let (name, phase) = (
                format!("{prefix}-{at}"),
                renewer.beat.mul_f64(at as f64 / count as f64),
            );
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
        let renewed = json!(stamp(TimeDelta::zero()));
        // A lease that a test has deleted stays deleted.
        self.update(
            "leases.coordination.k8s.io",
            "kube-node-lease",
            node,
            |lease| lease["spec"]["renewTime"] = renewed,
        )
        .ok();
        true
    }
}
