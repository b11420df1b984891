//! Reads again what a replica that does not lead protects by: its watches may have died without a
//! sign.

use std::time::Duration;

use common::logging::with_causes;
use common::objects::{self, ReadError, Readable};
use futures::TryFutureExt;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use prober_core::config::Config;
use prober_core::options::{Overrides, ResolvedOptions};
use prober_core::verdict::BackedNodes;
use tokio::time::timeout;

use super::{ClusterState, GARDEN, Namespace, Seed};
use crate::gardener::{Cluster, Machine};

/// Limit of the requests, which are made at once.
const LIMIT: Duration = Duration::from_secs(1);
/// Machines of a page: one request for most shoots, since the time is short.
const AT_ONCE: u32 = 1000;

impl Seed {
    /// Reads the Cluster, the namespaces that can forbid it, and the Machines of a shoot from the
    /// API server; fails unless they let a standby protect it, and the Machines are `known`. Passes no
    /// limiter, since it precedes protection, whose permit bounds how many are made at once.
    pub(crate) async fn confirm(
        &self,
        config: &Config,
        namespace: &str,
        uid: &str,
        known: &BackedNodes,
    ) -> Result<(), String> {
        let clusters = Api::<Cluster>::all(self.client.clone());
        let namespaces = Api::<Namespace>::all(self.client.clone());
        let read = async {
            tokio::try_join!(
                clusters.get(namespace).err_into(),
                namespaces.get_opt(namespace).err_into(),
                namespaces.get_opt(GARDEN).err_into(),
                self.list_machines(namespace),
            )
        };
        let read = timeout(LIMIT, read)
            .await
            .map_err(|late| late.to_string())?;
        let (cluster, own, garden, machines) =
            read.map_err(|error: ReadError| with_causes(&error))?;
        let [own, garden] =
            [own, garden].map(|namespace| Some(Overrides::of(namespace?.annotations())));
        let options = ResolvedOptions::resolve(config, garden.as_ref(), own.as_ref());
        let machines: BackedNodes = machines.iter().map(Option::as_deref).collect();
        let cluster = ClusterState::from(cluster);
        let wants_probe = cluster.uid == uid && cluster.wants_probe();
        [
            (wants_probe, "the Cluster is not to be probed by this seed"),
            (!options.pause.value, "it is paused"),
            (
                options.standby_protects.value,
                "standbys are not to protect",
            ),
            (machines == *known, "its Machines have changed"),
        ]
        .into_iter()
        .try_for_each(|(is_met, why)| is_met.then_some(()).ok_or_else(|| why.to_owned()))
    }

    /// The node that each Machine backs, if any.
    async fn list_machines(&self, namespace: &str) -> Result<Vec<Option<String>>, ReadError> {
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
