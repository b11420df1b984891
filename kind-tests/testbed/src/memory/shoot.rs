//! A healthy shoot as Gardener leaves it: the probe's right to ask it, its nodes, and what belongs
//! to it in the seed.

use std::time::Duration;

use api_server::{ApiError, MemoryApi, Store};

use crate::gardener::{self, CA, KCM, MCM};
use crate::memory::{LeaseRenewer, MemoryNodes};

/// What a shoot is made with. The default has a short grace, for tests.
#[derive(Clone, Debug)]
pub struct MemoryShootPlan<'a> {
    /// Its namespace in the seed.
    pub namespace: &'a str,
    /// The token by which it is probed.
    pub token: &'a str,
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
            token: "probe",
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
    /// Makes it out of an API server, and creates what belongs to it in the seed, its Cluster last.
    ///
    /// # Errors
    /// When one of its objects is there already.
    pub fn furnish(&self, seed: &Store, api: &MemoryApi) -> Result<MemoryNodes, ApiError> {
        api.access().grant(self.token, gardener::shoot_probe());
        let nodes = MemoryNodes::start(api.store(), "node", self.nodes, self.renewer.clone());
        for node in nodes.names() {
            seed.create(gardener::machine(self.namespace, node))?;
        }
        for (name, replicas) in self.deployments {
            seed.create(gardener::deployment(self.namespace, name, *replicas))?;
        }
        seed.create(gardener::probe_secret(
            self.namespace,
            &api.kubeconfig(self.token),
        ))?;
        seed.create(gardener::cluster(self.namespace, self.grace))?;
        Ok(nodes)
    }
}
