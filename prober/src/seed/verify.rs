//! Reads again what a replica that does not lead needs before it protects (D-50): its watches may
//! have died without a sign.

use std::sync::Arc;
use std::time::Duration;

use common::objects::{self, ListError, Readable};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use prober_core::config::Config;
use prober_core::options::{Overrides, ResolvedOptions};
use prober_core::shoot::Verified;

use super::namespace::PrunedNamespace;
use super::{ClusterState, GARDEN, Seed, within};
use crate::gardener::{Cluster, Machine};

/// Limit of each request; together they may take as long as a standby waits, 1.5 s.
const LIMIT: Duration = Duration::from_secs(1);
/// Machines of a page: one request for most shoots, since the time is short.
const AT_ONCE: u32 = 1000;

impl Seed {
    /// Reads the Cluster, the namespaces that can forbid it, and the Machines of a shoot from the
    /// API server; `None` if one of them cannot be read. Passes no limiter, since it precedes
    /// protection.
    pub async fn verify(&self, config: &Config, namespace: &str, uid: &str) -> Option<Verified> {
        let _permit = self.verifications.acquire().await.ok()?;
        let clusters = Api::<Cluster>::all(self.client.clone());
        let namespaces = Api::<PrunedNamespace>::all(self.client.clone());
        let (cluster, own, garden, machines) = tokio::try_join!(
            within(LIMIT, clusters.get(namespace)),
            within(LIMIT, namespaces.get_opt(namespace)),
            within(LIMIT, namespaces.get_opt(GARDEN)),
            within(LIMIT, self.list_machines(namespace)),
        )
        .inspect_err(|why| {
            tracing::warn!(
                namespace,
                why,
                "cannot be read again before the shoot is protected"
            )
        })
        .ok()?;
        let [own, garden] =
            [own, garden].map(|namespace| Some(Overrides::of(namespace?.annotations())));
        let options = ResolvedOptions::resolve(config, garden.as_ref(), own.as_ref());
        Some(Verified {
            is_ours: ClusterState::from(cluster).wants_probe(uid),
            is_paused: options.pause.value,
            standby_protects: options.standby_protects.value,
            machines: Arc::new(machines.iter().map(Option::as_deref).collect()),
        })
    }

    /// The node that each Machine backs, if any.
    async fn list_machines(&self, namespace: &str) -> Result<Vec<Option<String>>, ListError> {
        let api = Api::namespaced(self.client.clone(), namespace);
        let mut machines = Vec::new();
        let keep = |Readable(machine): Readable<Machine>| {
            let machine = machine.ok();
            let node = machine.as_ref().and_then(Machine::usable_node);
            machines.push(node.map(str::to_owned));
        };
        objects::list(&api, ListParams::default().limit(AT_ONCE), keep).await?;
        Ok(machines)
    }
}
