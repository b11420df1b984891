//! The prober of the command line: views, probe and verdict are those of the agent.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use common::events::Events;
use common::leader_election::Role;
use common::metrics::Registry;
use kube::Client;
use prober_core::config::{Config, Dependent, ResourceRef};
use prober_core::lifecycle::{Lifecycle, ShootSettings};
use prober_core::options::{Refused, ResolvedOptions};
use prober_core::replicas::DependentState;
use prober_core::shoot::Start;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::clock::Clock;
use crate::observability::metrics::Metrics;
use crate::observability::shoot_statuses::ShootStatuses;
use crate::observability::status::ProbeStatus;
use crate::owner_check;
use crate::owner_records::OwnerStatus;
use crate::seed::watch_scope::WatchScope;
use crate::seed::{ClusterState, Seed, SeedWatches};
use crate::shared::Shared;
use crate::shoot_client::resources::Resources;
use crate::suspend_detector::SuspendDetector;
use crate::task;
use crate::write::Writer;

/// Interval of progress reports while nothing happens.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Rate of a restore's writes: the defaults of --kube-api-qps and --kube-api-burst.
const QPS: f64 = 5.0;
const BURST: NonZeroU32 = NonZeroU32::new(10).expect("above 0");

/// Knows what the prober would know of a seed, or of one shoot.
pub struct ReadOnlyProber {
    config: Config,
    seed: Arc<Seed>,
    watches: SeedWatches,
}

impl ReadOnlyProber {
    /// Reads the seed. Kinds that do not exist, or objects that may not be listed, stay unknown after
    /// `limit`.
    pub async fn start(
        client: Client,
        config: Config,
        watch_scope: WatchScope,
        limit: Duration,
    ) -> Self {
        let seed = Arc::new(Seed::new(client, watch_scope));
        let watches = seed.watch(&config, None, |_, _| {});
        let _ = timeout(limit, seed.filled()).await;
        Self {
            config,
            seed,
            watches,
        }
    }

    pub fn unknown(&self) -> Option<&'static str> {
        self.seed.unknown()
    }

    pub fn clusters(&self) -> Vec<(String, Arc<ClusterState>)> {
        let mut clusters: Vec<_> = self
            .seed
            .clusters
            .all()
            .into_iter()
            .map(|(key, state)| (key.name, state))
            .collect();
        clusters.sort_by(|a, b| a.0.cmp(&b.0));
        clusters
    }

    pub fn cluster(&self, namespace: &str) -> Option<Arc<ClusterState>> {
        self.seed.clusters.get("", namespace)
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

    /// Number of a shoot's nodes that usable Machines back; `None` if the Machines could not be
    /// read.
    pub fn machines(&self, namespace: &str) -> Option<usize> {
        self.seed
            .machines(namespace)
            .map(|machines| machines.values().filter(|node| node.is_some()).count())
    }

    /// True if the shoot's operators want nothing written; `None` if the namespaces could not be
    /// read.
    pub fn paused(&self, namespace: &str) -> Option<bool> {
        self.options(namespace).map(|options| options.pause.value)
    }

    /// Settings of a shoot, and their sources; `None` if the namespaces could not be read.
    pub fn options(&self, namespace: &str) -> Option<ResolvedOptions> {
        self.seed.options(&self.config, namespace)
    }

    /// The same for a shoot whose namespace sets nothing.
    pub fn seed_options(&self) -> Option<ResolvedOptions> {
        self.seed.seed_options(&self.config)
    }

    /// Annotations whose values are refused, each with its namespace.
    pub fn refused(&self) -> Vec<(String, Refused)> {
        self.seed.refused()
    }

    /// Checks the owner records of these shoots, each once; empty if the config wants no check.
    pub async fn owners(&self, namespaces: &[String]) -> HashMap<String, OwnerStatus> {
        match &self.config.owner_check {
            Some(check) => owner_check::check_all(&self.seed, check, namespaces).await,
            None => HashMap::new(),
        }
    }

    pub async fn owner(&self, namespace: &str) -> Option<OwnerStatus> {
        self.owners(&[namespace.to_owned()]).await.remove(namespace)
    }

    /// Longest time for which a shoot must be watched until its leases are judged.
    pub fn longest_doubt(&self, namespace: &str) -> Duration {
        let cluster = self.cluster(namespace);
        let settings =
            cluster.map_or_else(ShootSettings::default, |cluster| cluster.settings.clone());
        let grace = settings.grace(&self.config).for_kubelets();
        (grace.longest_doubt() + grace.recovery_gap())
            .to_std()
            .unwrap_or_default()
    }

    /// Probes a shoot until `enough`, for at most `limit`; `None` if it may not be probed.
    /// `progress` gets the status at least once a second.
    pub async fn probe(
        &self,
        namespace: &str,
        limit: Duration,
        enough: impl Fn(&ProbeStatus) -> bool,
        mut progress: impl FnMut(&ProbeStatus),
    ) -> Option<ProbeStatus> {
        let cluster = self.cluster(namespace)?;
        let Some(Lifecycle::Probe) = cluster.lifecycle else {
            return None;
        };
        let (shared, deadline) = (self.shared(Role::DryRun), Instant::now() + limit);
        let (clock, statuses) = (shared.clock, shared.statuses.clone());
        let start = Start {
            eligible: clock.now(),
            in_operation: true,
        };
        let mut driver = task::start_driver(shared, namespace, Arc::clone(&cluster), start);
        loop {
            let status = ProbeStatus::of(namespace, &statuses, clock)?;
            progress(&status);
            if enough(&status) || Instant::now() >= deadline {
                return Some(status);
            }
            let until = deadline.min(Instant::now() + PROGRESS_INTERVAL);
            driver.step_until(until).await;
            if !self.cluster(namespace)?.wants_probe(&cluster.uid) {
                return None;
            }
        }
    }

    /// State that the tasks of the shoots share. Writes have the default rate of the prober.
    pub fn shared(&self, role: Role) -> Shared {
        let clock = Clock::start();
        let suspend_detector = SuspendDetector::new(clock);
        // Probes once; what would be written is said at once, too. Owner records are checked by
        // those who ask for them.
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
                role.write_fence(),
                suspend_detector.clone(),
            )),
            suspend_detector,
            metrics: Metrics::register(&mut Registry::default()),
            statuses: ShootStatuses::new(clock, false),
            events: Events::none(),
            role,
        }
    }

    pub async fn end(self) {
        self.watches.end().await;
    }
}
