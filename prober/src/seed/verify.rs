//! What a replica that does not lead reads again before it protects (D-50): its watches may have
//! died without a sign.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, ResourceExt};
use prober_core::config::Config;
use prober_core::options::{Overrides, ResolvedOptions};
use prober_core::shoot::Verified;

use super::{ClusterState, GARDEN, Seed, within};
use crate::gardener::{Cluster, Machine};

/// How long each of the requests may take; together they may take as long as a standby waits, 1.5
/// s.
const LIMIT: Duration = Duration::from_secs(1);

impl Seed {
    /// Reads the Cluster, the namespaces that can forbid it, and the Machines of a shoot from the
    /// API server; none if one of them cannot be read. Passes no limiter, since it precedes
    /// protection.
    pub async fn verify(&self, config: &Config, namespace: &str, uid: &str) -> Option<Verified> {
        let _permit = self.verifications.acquire().await.ok()?;
        let (clusters, namespaces) = (
            Api::<Cluster>::all(self.client.clone()),
            Api::<Namespace>::all(self.client.clone()),
        );
        let machines = Api::<DeserializeGuard<Machine>>::namespaced(self.client.clone(), namespace);
        let all = ListParams::default();
        let (cluster, own, garden, machines) = tokio::try_join!(
            within(LIMIT, clusters.get(namespace)),
            within(LIMIT, namespaces.get_opt(namespace)),
            within(LIMIT, namespaces.get_opt(GARDEN)),
            within(LIMIT, machines.list(&all)),
        )
        .inspect_err(|why| {
            tracing::warn!(
                namespace,
                why,
                "cannot be read again before the shoot is protected"
            )
        })
        .ok()?;
        let machines = machines
            .items
            .iter()
            .map(|machine| machine.0.as_ref().ok().and_then(Machine::usable_node));
        let [own, garden] =
            [own, garden].map(|namespace| Some(Overrides::of(namespace?.annotations())));
        let options = ResolvedOptions::resolve(config, garden.as_ref(), own.as_ref());
        Some(Verified {
            is_ours: ClusterState::from(cluster).wants_probe(uid),
            is_paused: options.pause.value,
            standby_protects: options.standby_protects.value,
            machines: Arc::new(machines.collect()),
        })
    }
}
