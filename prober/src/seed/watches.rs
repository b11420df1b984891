//! Watches that keep the views of the seed up to date.

use std::sync::Arc;

use common::view::Key;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use prober_core::config::{Config, Dependent};
use prober_core::options::Overrides;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::cluster::ClusterState;
use super::dependent::DependentView;
use super::namespace::PrunedNamespace;
use super::secret::SecretView;
use super::{Named, PER_PAGE, Seed};
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
    ended: CancellationToken,
}

impl SeedWatches {
    /// Ends the watches, and waits until they have ended.
    pub async fn end(mut self) {
        self.ended.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Seed {
    /// Starts the watches, which go on until they are ended. Clusters that may have changed go to
    /// `clusters`.
    pub fn watch(&self, config: &Config, clusters: Option<mpsc::Sender<Key>>) -> SeedWatches {
        let (changes, changed) = mpsc::channel(CHANGES);
        let (mut tasks, ended) = (JoinSet::new(), CancellationToken::new());
        tasks.spawn(Arc::clone(&self.clusters).run(
            Api::all(self.client.clone()),
            ListParams::default().limit(CLUSTERS_PER_PAGE),
            |cluster: Cluster| Some(ClusterState::from(cluster)),
            clusters,
            ended.clone(),
        ));
        tasks.spawn(Arc::clone(&self.machines).run(
            Api::all(self.client.clone()),
            ListParams::default().limit(PER_PAGE),
            |machine: Machine| Some(machine.usable_node().map(Arc::from)),
            None,
            ended.clone(),
        ));
        let known = Arc::clone(&self.namespaces);
        let overrides = move |namespace: PrunedNamespace| {
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
            ended.clone(),
        ));
        tasks.spawn(Arc::clone(&self.wakers).forward(changed, ended.clone()));
        // Whoever regains the seed restores only by Clusters that were read since.
        let (clusters, stop) = (Arc::clone(&self.clusters), ended.clone());
        tasks.spawn(async move {
            let relists = clusters.relist_after_interruptions();
            stop.run_until_cancelled(relists).await.unwrap_or_default()
        });
        let mut watches = SeedWatches {
            tasks,
            changes,
            ended,
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
        let SeedWatches {
            tasks,
            changes,
            ended,
        } = watches;
        let mut named = self.named.write();
        let secret = &config.kubeconfig_secret_name;
        let is_watched = |secrets: &Arc<SecretView>| secrets.name == *secret;
        if !named.secrets.as_ref().is_some_and(is_watched) {
            let secrets = SecretView::new(secret, &self.unreadable, ended.child_token());
            tasks.spawn(secrets.run(self.client.clone()));
            if let Some(before) = named.secrets.replace(secrets) {
                before.ended.cancel();
            }
        }
        let is_named = |view: &Arc<DependentView>| {
            let mut dependents = config.dependents.iter();
            dependents.any(|dependent| dependent.resource == view.resource)
        };
        let Named { dependents, .. } = &mut *named;
        let dropped: Vec<_> = dependents.extract_if(.., |view| !is_named(view)).collect();
        for Dependent { resource, .. } in &config.dependents {
            if !dependents.iter().any(|view| view.resource == *resource) {
                let view =
                    DependentView::new(resource.clone(), &self.unreadable, ended.child_token());
                tasks.spawn(view.run(self.client.clone(), changes.clone()));
                dependents.push(view);
            }
        }
        for view in &dropped {
            view.ended.cancel();
        }
        dropped
    }
}
