//! What is known of the seed: a handful of watches, each narrowed by a field selector and pruned,
//! for all shoots together.

pub mod dependent;
pub mod secret;
mod verify;
pub mod wakers;
pub mod watch_scope;

use std::sync::Arc;
use std::time::Duration;

use common::logging::with_causes;
use common::view::{Key, Namespaced, View};
use k8s_openapi::api::core::v1::Namespace;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use prober_core::config::{Config, Dependent, ResourceRef};
use prober_core::gardener::Shoot;
use prober_core::lifecycle::{Lifecycle, ShootSettings, StopReason, lifecycle, settings};
use prober_core::options::{GARDEN, Overrides, Refused, ResolvedOptions};
use prober_core::owner::Facts;
use prober_core::replicas::DependentState;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::dependent::DependentView;
use self::secret::SecretView;
use self::wakers::Wakers;
use self::watch_scope::WatchScope;
use crate::gardener::{Cluster, ClusterSpec, Machine, SeedRef};

/// Changed objects that may wait for the shoots' tasks; more of them hold up the watches.
const CHANGES: usize = 256;
/// So many shoots are read again at once before a replica that does not lead protects them (D-50).
const VERIFICATIONS: usize = 32;
/// A Cluster carries the CloudProfile and the Seed of its shoot, some 100 kB: 500 to a page, the
/// size for all else, would come to 50 MB.
const CLUSTERS_PER_PAGE: u32 = 50;

/// What a Cluster says of its shoot, judged once for each change.
#[derive(Debug)]
pub struct ClusterState {
    pub uid: String,
    /// The seed that it is on.
    pub seed: SeedRef,
    /// The embedded shoot, absent, or why it cannot be understood.
    pub shoot: Option<Result<Shoot, String>>,
    /// None if the shoot is absent or cannot be understood.
    pub lifecycle: Option<Lifecycle>,
    pub settings: ShootSettings,
}

impl From<Cluster> for ClusterState {
    fn from(cluster: Cluster) -> Self {
        let uid = cluster.uid().unwrap_or_default();
        let ClusterSpec { shoot, seed } = cluster.spec;
        let readable = shoot.as_ref().and_then(|shoot| shoot.as_ref().ok());
        Self {
            lifecycle: readable.map(|shoot| lifecycle(shoot, seed.name.as_deref())),
            settings: readable.map(settings).unwrap_or_default(),
            uid,
            seed,
            shoot,
        }
    }
}

impl ClusterState {
    /// Whether the probe that was started for the Cluster of this UID is still wanted. A shoot that
    /// cannot be understood keeps its probe (D-13).
    pub fn wants_probe(&self, uid: &str) -> bool {
        self.uid == uid && !matches!(self.lifecycle, Some(Lifecycle::Stop(_)))
    }

    /// In one word from a fixed set.
    pub fn as_str(&self) -> &'static str {
        match (&self.shoot, &self.lifecycle) {
            (_, Some(lifecycle)) => lifecycle.as_str(),
            (None, _) => "no_shoot",
            (Some(_), None) => "unreadable",
        }
    }

    /// Whether no seed can own it but itself, so that no owner record is checked.
    pub fn is_self_hosted(&self) -> bool {
        self.lifecycle == Some(Lifecycle::Stop(StopReason::SelfHosted))
    }

    /// What templates of the config can say of the shoot, whose Cluster has this name.
    pub fn facts(&self, namespace: &str) -> Facts {
        let SeedRef { name, uid } = self.seed.clone();
        Facts {
            namespace: namespace.to_owned(),
            domain: self
                .readable()
                .and_then(|shoot| shoot.internal_domain.clone()),
            seed: name,
            seed_uid: uid,
        }
    }

    pub fn readable(&self) -> Option<&Shoot> {
        self.shoot.as_ref()?.as_ref().ok()
    }
}

pub struct Seed {
    pub client: Client,
    pub clusters: Arc<View<ClusterState>>,
    /// Per Machine the node that it backs; none if it backs none, or is Failed or Terminating. A
    /// seed that knows no Machines has none (D-55).
    machines: Arc<View<Option<String>>>,
    /// What annotations on namespaces set; only those that set anything.
    namespaces: Arc<View<Overrides>>,
    named: watch::Sender<Named>,
    /// The shoots' tasks, which are woken by what concerns them.
    pub wakers: Arc<Wakers>,
    verifications: Semaphore,
    watch_scope: WatchScope,
}

/// What keeps the views up to date.
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

#[derive(Clone)]
struct Named {
    secrets: Arc<SecretView>,
    dependents: Vec<Arc<DependentView>>,
}

impl Seed {
    /// Knows nothing before [`Self::watch`].
    pub fn new(client: Client, watch_scope: WatchScope) -> Self {
        let named = Named {
            secrets: SecretView::new("", CancellationToken::new()),
            dependents: Vec::new(),
        };
        Self {
            client,
            clusters: View::new("clusters"),
            machines: View::of_optional_kind("machines"),
            namespaces: View::new("namespaces"),
            named: watch::Sender::new(named),
            wakers: Arc::default(),
            verifications: Semaphore::new(VERIFICATIONS),
            watch_scope,
        }
    }

    /// Starts the watches, which go on until they are ended. Clusters that may have changed go to
    /// `clusters`; `report` is called for each annotation on a namespace that is newly refused.
    pub fn watch(
        &self,
        config: &Config,
        clusters: Option<mpsc::Sender<Key>>,
        report: impl Fn(&str, &Refused) + Send + 'static,
    ) -> SeedWatches {
        let (changes, changed) = mpsc::channel(CHANGES);
        let mut watches = SeedWatches {
            tasks: JoinSet::new(),
            changes,
            ended: CancellationToken::new(),
        };
        let SeedWatches {
            tasks,
            changes,
            ended,
        } = &mut watches;
        let (client, ended) = (|| self.client.clone(), || ended.clone());
        let named = self.watch_scope.named().page_size(CLUSTERS_PER_PAGE);
        let prune = |cluster: Cluster| Some(ClusterState::from(cluster));
        tasks.spawn(Arc::clone(&self.clusters).run(
            Api::all(client()),
            named,
            prune,
            clusters,
            ended(),
        ));

        let machines = self.watch_scope.namespaced::<Machine>(client());
        let prune = |machine: Machine| Some(machine.usable_node().map(str::to_owned));
        tasks.spawn(Arc::clone(&self.machines).run(
            machines,
            watcher::Config::default(),
            prune,
            None,
            ended(),
        ));

        // All of them also for a single shoot: what `garden` says holds for each.
        let named = watcher::Config::default();
        let known = Arc::clone(&self.namespaces);
        let prune = move |namespace: Namespace| {
            let (name, overrides) = (namespace.name_any(), Overrides::of(namespace.annotations()));
            let before = known.get("", &name).unwrap_or_default();
            overrides
                .refused
                .iter()
                .filter(|refused| !before.refused.contains(refused))
                .for_each(|refused| report(&name, refused));
            (!overrides.is_empty()).then_some(overrides)
        };
        tasks.spawn(Arc::clone(&self.namespaces).run(
            Api::all(client()),
            named,
            prune,
            Some(changes.clone()),
            ended(),
        ));
        tasks.spawn(Arc::clone(&self.wakers).forward(changed, ended()));
        // Whoever regains the seed restores only by Clusters that were read since.
        let (clusters, stop) = (Arc::clone(&self.clusters), ended());
        tasks.spawn(async move {
            stop.run_until_cancelled(clusters.reread_after_interruptions())
                .await
                .unwrap_or_default()
        });
        self.follow_config(config, &mut watches);
        watches
    }

    /// Follows a changed config: what it names again is watched, what it names no more is not.
    /// Returns the latter.
    pub fn follow_config(
        &self,
        config: &Config,
        SeedWatches {
            tasks,
            changes,
            ended,
        }: &mut SeedWatches,
    ) -> Vec<Arc<DependentView>> {
        let Named {
            mut secrets,
            dependents,
        } = self.named.borrow().clone();
        if self.watch_scope != WatchScope::Unprobed && secrets.name != config.kubeconfig_secret_name
        {
            secrets.ended.cancel();
            secrets = SecretView::new(&config.kubeconfig_secret_name, ended.child_token());
            tasks.spawn(secrets.run(self.client.clone(), &self.watch_scope));
        }
        let (mut dependents, dropped): (Vec<_>, Vec<_>) =
            dependents.into_iter().partition(|view| {
                config
                    .dependents
                    .iter()
                    .any(|d| d.resource == view.resource)
            });
        dropped.iter().for_each(|view| view.ended.cancel());
        for Dependent { resource, .. } in &config.dependents {
            if !dependents.iter().any(|view| view.resource == *resource) {
                let view = DependentView::new(resource.clone(), ended.child_token());
                tasks.spawn(Arc::clone(&view).run(
                    self.client.clone(),
                    self.watch_scope.clone(),
                    changes.clone(),
                ));
                dependents.push(view);
            }
        }
        self.named.send_replace(Named {
            secrets,
            dependents,
        });
        dropped
    }

    /// Waits until every view was filled once.
    pub async fn filled(&self) {
        let Named {
            secrets,
            dependents,
        } = self.named.borrow().clone();
        futures::join!(
            self.clusters.live(),
            self.machines.live(),
            self.namespaces.live()
        );
        if self.watch_scope != WatchScope::Unprobed {
            secrets.view.live().await;
        }
        futures::future::join_all(dependents.iter().map(|dependent| dependent.filled())).await;
    }

    /// What of the seed is not known at present, if anything. Dependents are left out, since their
    /// kinds may not exist, and namespaces, without which the leader protects all the same.
    pub fn unknown(&self) -> Option<&'static str> {
        let views = [
            (self.clusters.is_known(), "Clusters"),
            (self.machines.is_known(), "Machines"),
            (
                self.watch_scope == WatchScope::Unprobed
                    || self.named.borrow().secrets.view.is_known(),
                "Secrets",
            ),
        ];
        views
            .into_iter()
            .find(|(known, _)| !known)
            .map(|(_, what)| what)
    }

    /// Whether all is known that shoots are protected and restored by: the above, every dependent
    /// whose kind exists, and what is paused.
    pub fn is_known(&self) -> bool {
        self.unknown().is_none()
            && self.namespaces.is_known()
            && self
                .named
                .borrow()
                .dependents
                .iter()
                .all(|dependent| !dependent.is_unknown())
    }

    pub fn secrets(&self) -> Arc<SecretView> {
        Arc::clone(&self.named.borrow().secrets)
    }

    /// What holds for a shoot; none when the namespaces are not known (D-27).
    pub fn options(&self, config: &Config, namespace: &str) -> Option<ResolvedOptions> {
        self.resolve(config, || self.namespaces.get("", namespace))
    }

    /// What holds for a shoot whose namespace sets nothing.
    pub fn seed_options(&self, config: &Config) -> Option<ResolvedOptions> {
        self.resolve(config, || None)
    }

    fn resolve(
        &self,
        config: &Config,
        own: impl FnOnce() -> Option<Arc<Overrides>>,
    ) -> Option<ResolvedOptions> {
        // What is read before it is known may be out of date when it is.
        let garden = self
            .namespaces
            .is_known()
            .then(|| self.namespaces.get("", GARDEN))?;
        Some(ResolvedOptions::resolve(
            config,
            garden.as_deref(),
            own().as_deref(),
        ))
    }

    /// The annotations that are refused as they are now, each with its namespace.
    pub fn refused(&self) -> Vec<(String, Refused)> {
        let mut all = self.namespaces.all();
        all.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        let refused = |(key, overrides): (Key, Arc<Overrides>)| {
            let refused = overrides.refused.clone();
            refused
                .into_iter()
                .map(move |refused| (key.name.clone(), refused))
        };
        all.into_iter().flat_map(refused).collect()
    }

    /// The Machines of a shoot, each with the node that it backs, if any; none when the Machines
    /// are not known (D-27). The very same while nothing has changed.
    pub fn machines(&self, namespace: &str) -> Option<Arc<Namespaced<Option<String>>>> {
        self.machines
            .is_known()
            .then(|| self.machines.all_in(namespace))
    }

    pub fn state(&self, resource: &ResourceRef, namespace: &str) -> DependentState {
        let view = self.dependent(resource);
        view.map(|view| view.state(namespace)).unwrap_or_default()
    }

    pub fn dependent(&self, resource: &ResourceRef) -> Option<Arc<DependentView>> {
        self.named
            .borrow()
            .dependents
            .iter()
            .find(|dependent| dependent.resource == *resource)
            .cloned()
    }
}

/// Bounds a request in time; what went wrong is for people.
async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, String> {
    match timeout(limit, request).await {
        Ok(answer) => answer.map_err(|error| with_causes(&error)),
        Err(elapsed) => Err(elapsed.to_string()),
    }
}
