//! The seed for people: what its objects say, through the views of the agent, and what a restore by
//! hand writes with. No shoot is probed, and neither Secrets nor Machines are read.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use common::events::Events;
use common::leader_election::Election;
use common::metrics::Registry;
use kube::Client;
use prober_core::config::{Config, Dependent, ResourceRef};
use prober_core::options::ResolvedOptions;
use prober_core::replicas::DependentState;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::clock::Clock;
use crate::observability::metrics::Metrics;
use crate::observability::shoot_statuses::{ShootState, ShootStatuses};
use crate::observability::status::{ProberStatus, ShootEntry};
use crate::seed::watch_scope::WatchScope;
use crate::seed::{ClusterState, Seed, SeedWatches};
use crate::shared::Shared;
use crate::shoot_client::resources::Resources;
use crate::suspend_detector::SuspendDetector;
use crate::write::Writer;

/// Rate of a restore's writes: the defaults of --kube-api-qps and --kube-api-burst.
const QPS: f64 = 5.0;
const BURST: NonZeroU32 = NonZeroU32::new(10).expect("above 0");

/// Knows what the objects of a seed, or of one shoot, say.
pub struct SeedReader {
    config: Config,
    seed: Arc<Seed>,
    watches: SeedWatches,
}

impl SeedReader {
    /// Reads all shoots, or one. Kinds that do not exist, or objects that may not be listed, stay
    /// unknown after `limit`.
    pub async fn start(
        client: Client,
        config: Config,
        shoot: Option<String>,
        limit: Duration,
    ) -> Self {
        let seed = Arc::new(Seed::new(client, WatchScope::Unprobed(shoot)));
        let watches = seed.watch(&config, None);
        let _ = timeout(limit, seed.filled()).await;
        Self {
            config,
            seed,
            watches,
        }
    }

    /// True if the Clusters are known, without which nothing can be said of any shoot.
    pub fn knows_clusters(&self) -> bool {
        self.seed.unknown().is_none()
    }

    pub fn cluster(&self, namespace: &str) -> Option<Arc<ClusterState>> {
        self.seed.clusters.get("", namespace)
    }

    /// One shoot, as the seed shows it.
    pub fn shoot(&self, namespace: String, cluster: &ClusterState) -> ShootEntry {
        let facts = self.seed.facts(&self.config, &namespace);
        ShootEntry::new(namespace, &ShootState::from(cluster), &facts, &self.config)
    }

    /// All of the seed, in the form in which a prober shows it.
    pub fn status(&self) -> ProberStatus {
        let clusters = self.seed.clusters.all().into_iter();
        let shoots = clusters.map(|(key, cluster)| self.shoot(key.name, &cluster));
        self.seed.status(&self.config).with_entries(shoots)
    }

    /// Namespaces in which a dependent carries the marker.
    pub fn held_down(&self) -> BTreeSet<String> {
        let views = self.seed.dependents().into_iter();
        views.flat_map(|view| view.held_down()).collect()
    }

    /// Dependents whose state is unknown in all shoots, although their kinds may exist.
    pub fn unread(&self) -> Vec<ResourceRef> {
        let views = self.seed.dependents().into_iter();
        views
            .filter(|view| view.is_unknown())
            .map(|view| view.resource.clone())
            .collect()
    }

    pub fn dependents(&self, namespace: &str) -> Vec<(&Dependent, DependentState)> {
        let state = |dependent: &Dependent| self.seed.state(&dependent.resource, namespace);
        let dependents = self.config.dependents.iter();
        dependents
            .map(|dependent| (dependent, state(dependent)))
            .collect()
    }

    /// Settings of a shoot, and their sources; `None` if the namespaces could not be read.
    pub fn options(&self, namespace: &str) -> Option<ResolvedOptions> {
        self.seed.options(&self.config, namespace)
    }

    /// State that the restores of several shoots share. They write at the default rate of the
    /// prober, together.
    pub fn shared(&self) -> Shared {
        let (clock, election) = (Clock::start(), Election::Alone);
        let suspend_detector = SuspendDetector::new(clock);
        let config = Config {
            initial_delay: Duration::ZERO,
            owner_check: None,
            ..self.config.clone()
        };
        Shared {
            clock,
            resources: Arc::new(Resources::of_system()),
            config: watch::channel(Arc::new(config)).1,
            seed: Arc::clone(&self.seed),
            writer: Arc::new(Writer::new(
                Arc::clone(&self.seed),
                QPS,
                BURST,
                election.clone(),
                suspend_detector.clone(),
            )),
            suspend_detector,
            metrics: Metrics::register(&mut Registry::default()),
            statuses: ShootStatuses::new(clock),
            events: Events::none(),
            election,
        }
    }

    pub async fn end(self) {
        self.watches.end().await;
    }
}
