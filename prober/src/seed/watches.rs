//! Watches that keep the views of the seed up to date.

use std::collections::BTreeMap;
use std::sync::Arc;

use common::view::Key;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use prober_core::config::{Config, Dependent, ResourceRef};
use prober_core::options::Overrides;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::cluster::ClusterState;
use super::dependent::DependentView;
use super::secret::SecretView;
use super::{Namespace, PER_PAGE, Seed};
use crate::gardener::{Cluster, Machine};

/// Changed objects that may wait for the shoots' tasks; more of them hold up the watches.
const CHANGES: usize = 256;
/// A Cluster carries the CloudProfile and the Seed of its shoot, some 100 kB, ten times what all
/// else takes.
const CLUSTERS_PER_PAGE: u32 = 10;

pub struct SeedWatches {
    pub tasks: JoinSet<()>,
    /// Takes the objects that may have changed, for the shoots' tasks.
    changes: mpsc::Sender<Key>,
    /// Those of the objects that the config names.
    secrets: Option<AbortHandle>,
    dependents: BTreeMap<ResourceRef, AbortHandle>,
}

impl SeedWatches {
    /// Ends the watches, and waits until they have ended.
    pub async fn end(mut self) {
        self.tasks.shutdown().await;
    }
}

impl Seed {
    /// Starts the watches, which go on until they are ended. Clusters that may have changed go to
    /// `clusters`.
    pub fn watch(&self, config: &Config, clusters: mpsc::Sender<Key>) -> SeedWatches {
        let (changes, changed) = mpsc::channel(CHANGES);
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&self.clusters).run(
            Api::all(self.client.clone()),
            ListParams::default().limit(CLUSTERS_PER_PAGE),
            |cluster: Cluster| Some(ClusterState::from(cluster)),
            Some(clusters),
        ));
        tasks.spawn(Arc::clone(&self.machines).run(
            Api::all(self.client.clone()),
            ListParams::default().limit(PER_PAGE),
            |machine: Machine| Some(machine.usable_node().map(Arc::from)),
            None,
        ));
        let known = Arc::clone(&self.namespaces);
        let overrides = move |namespace: Namespace| {
            let (name, overrides) = (namespace.name_any(), Overrides::of(namespace.annotations()));
            let before = known.get("", &name).unwrap_or_default();
            for refused in &overrides.refused {
                if !before.refused.contains(refused) {
                    tracing::error!(
                        namespace = name,
                        refused,
                        "invalid annotation ignored, using the inherited value"
                    );
                }
            }
            (!overrides.is_empty()).then_some(overrides)
        };
        tasks.spawn(Arc::clone(&self.namespaces).run(
            Api::all(self.client.clone()),
            ListParams::default().limit(PER_PAGE),
            overrides,
            Some(changes.clone()),
        ));
        tasks.spawn(Arc::clone(&self.wakers).forward(changed));
        let (clusters, wakers) = (Arc::clone(&self.clusters), Arc::clone(&self.wakers));
        tasks.spawn(async move {
            let act = || {
                // Whoever regains the seed restores only by Clusters that were read since.
                clusters.relist_if_missed();
                wakers.wake_all();
            };
            clusters.each_time_live(act).await;
        });
        let mut watches = SeedWatches {
            tasks,
            changes,
            secrets: None,
            dependents: BTreeMap::new(),
        };
        self.follow_config(config, &mut watches);
        watches
    }

    /// Starts the watches of what a changed config names, and ends those of what it no longer
    /// names. Returns the dependents among the latter.
    pub(crate) fn follow_config(
        &self,
        config: &Config,
        watches: &mut SeedWatches,
    ) -> Vec<Arc<DependentView>> {
        let mut named = self.named.write();
        let secret = &config.kubeconfig_secret_name;
        let is_watched = |secrets: &Arc<SecretView>| secrets.name == *secret;
        if !named.secrets.as_ref().is_some_and(is_watched) {
            let secrets = SecretView::new(secret, &self.unreadable);
            let task = watches.tasks.spawn(secrets.run(self.client.clone()));
            named.secrets = Some(secrets);
            if let Some(before) = watches.secrets.replace(task) {
                before.abort();
            }
        }
        let is_named = |view: &Arc<DependentView>| {
            let mut dependents = config.dependents.iter();
            dependents.any(|dependent| dependent.resource == view.resource)
        };
        let dropped = named.dependents.extract_if(.., |view| !is_named(view));
        let dropped: Vec<_> = dropped.collect();
        for view in &dropped {
            if let Some(task) = watches.dependents.remove(&view.resource) {
                task.abort();
            }
        }
        for Dependent { resource, .. } in &config.dependents {
            if !watches.dependents.contains_key(resource) {
                let view = DependentView::new(resource.clone(), &self.unreadable);
                let run = view.run(self.client.clone(), watches.changes.clone());
                let task = watches.tasks.spawn(run);
                watches.dependents.insert(resource.clone(), task);
                named.dependents.push(view);
            }
        }
        dropped
    }
}
