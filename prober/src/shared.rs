//! State that the tasks of all shoots share, and what of it a shoot decides by.

use std::sync::Arc;

use common::events::Events;
use common::leader_election::Election;
use prober_core::config::{Config, OwnerCheck};
use prober_core::lifecycle::ShootSettings;
use prober_core::options::ResolvedOptions;
use prober_core::plan::ByDirection;
use prober_core::shoot::{Environment, Owner};
use prober_core::verdict::BackedNodes;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::observability::metrics::Metrics;
use crate::observability::shoot_statuses::ShootStatuses;
use crate::seed::Seed;
use crate::shoot_client::resources::Resources;
use crate::suspend_detector::SuspendDetector;
use crate::task::Assignment;
use crate::write::Permits;

#[derive(Clone)]
pub struct Shared {
    pub clock: Clock,
    pub resources: Arc<Resources>,
    pub config: watch::Receiver<Arc<Config>>,
    pub seed: Arc<Seed>,
    pub permits: Arc<Permits>,
    pub suspend_detector: SuspendDetector,
    pub metrics: Metrics,
    pub statuses: ShootStatuses,
    pub events: Events,
    /// In a dry run nothing is written, but logged and counted.
    pub election: Election,
    /// Ends the process.
    pub shutdown: CancellationToken,
}

impl Shared {
    /// Returns what a shoot decides by, besides probes and answers. Its settings are as `before` while
    /// its Cluster cannot be understood.
    pub(crate) fn environment(
        &self,
        shoot: &Assignment,
        config: Arc<Config>,
        before: &Arc<ShootSettings>,
        machines: Option<Arc<BackedNodes>>,
    ) -> Environment {
        let namespace = &*shoot.namespace;
        let Self {
            clock,
            seed,
            suspend_detector,
            election,
            ..
        } = self;
        let (options, resumed) = (
            seed.options(&config, Some(namespace)),
            suspend_detector.resumed(),
        );
        let live = seed
            .clusters
            .live_since()
            .map(|since| clock.moment(since).max(resumed));
        // Whoever gains leadership restores only by Clusters that it has read since.
        let listed = seed.clusters.listed_at().map(|at| clock.moment(at));
        let cluster = seed.clusters.get("", namespace);
        let cluster = cluster.filter(|cluster| cluster.uid == shoot.cluster.uid);
        let settings = match &cluster {
            Some(cluster) if cluster.lifecycle.is_some() => &cluster.settings,
            _ => before,
        };
        let owner = |check: &OwnerCheck| {
            let owner = self.statuses.owner(namespace, |record| {
                Some(record.as_ref()?.owner(check.on_loss, resumed))
            });
            owner.unwrap_or(Owner::Unknown)
        };
        Environment {
            settings: Arc::clone(settings),
            options: options.unwrap_or_else(|| ResolvedOptions::resolve(&config, None, None)),
            leads: election.leads(),
            dry_run: election.is_dry_run(),
            seed_since: ByDirection {
                up: live.zip(listed).map(|(live, listed)| live.max(listed)),
                down: live,
            },
            leader_silent_from: election.leader_silent_from().map(|at| clock.moment(at)),
            is_ours: cluster.is_some_and(|cluster| cluster.wants_probe()),
            owner: config.owner_check.as_ref().map(owner).unwrap_or_default(),
            paused: options.map(|options| options.pause.value),
            dependents: config
                .dependents
                .iter()
                .map(|dependent| seed.state(&dependent.resource, namespace))
                .collect(),
            machines,
            shoots: seed.wakers.count().try_into().unwrap_or(i32::MAX),
            chance: fastrand::f64(),
            config,
        }
    }
}
