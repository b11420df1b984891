//! The prober as a process: config, client, views, manager.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use common::agent_runtime::{AgentRuntime, Endpoints};
use common::config_file::ConfigFile;
use common::flags::{Agent, AgentArgs};
use common::health::{self, Check};
use common::metrics::register_seed_known;
use common::process::propagate_panic;
use common::transport::Dialer;
use prober_core::config::Config;
use prober_core::span;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config;
use crate::manager::Manager;
use crate::observability::metrics::Metrics;
use crate::observability::shoot_statuses::ShootStatuses;
use crate::observability::status::ProberStatus;
use crate::owner;
use crate::seed::dependent::DependentView;
use crate::seed::{Seed, SeedWatches};
use crate::shared::Shared;
use crate::shoot_client::resources::Resources;
use crate::suspend_detector::{SuspendDetector, WallClock};
use crate::write::Permits;

/// The Lease that replicas of the prober elect their leader by (rule 79).
const LEASE: &str = "dwd-prober-leader-election";
/// Cluster changes that may be queued; more of them hold up the watch.
const CHANGES: usize = 256;
/// Longest wait of the first probes for views that cannot be filled, such as that of a kind that
/// does not exist.
const FILL_WAIT: Duration = Duration::from_secs(5);

/// A probe that is overdue by more than probeTimeout and this means that the probe loop stalls.
const STALLED: Duration = Duration::from_secs(60);

/// What this process has of its host.
pub struct Host {
    pub wall_clock: WallClock,
    /// To the API server of the seed.
    pub seed: Dialer,
    pub resources: Resources,
}

pub async fn run(args: AgentArgs, shutdown: CancellationToken) -> anyhow::Result<()> {
    let host = Host {
        wall_clock: Utc::now,
        seed: Dialer::default(),
        resources: Resources::of_system(),
    };
    run_on(host, args, shutdown).await
}

pub async fn run_on(
    host: Host,
    args: AgentArgs,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let clock = Clock::start((host.wall_clock)());
    let (config, mut file) = ConfigFile::open(&args.config_file, config::parse)?;
    let mut runtime = AgentRuntime::open(Agent::Prober, &args, LEASE, host.seed).await?;
    let AgentRuntime {
        client,
        events,
        registry,
        election,
        ..
    } = &mut runtime;
    file.report_to(registry, events.clone());
    let statuses = ShootStatuses::new(clock);
    registry.register_collector(Box::new(statuses.clone()));
    let seed = Arc::new(Seed::new(client.clone()));
    let known = Arc::clone(&seed);
    register_seed_known(registry, move || known.is_known());
    registry.register(
        "dwd_unreadable_objects",
        "Objects that could not be read; what was known of them stays",
        seed.unreadable.clone(),
    );
    let burst = NonZeroU32::new(args.kube_api_burst).unwrap_or(NonZeroU32::MIN);
    let (config_sender, config) = watch::channel(Arc::new(config));
    let shared = Shared {
        clock,
        resources: Arc::new(host.resources),
        config,
        seed,
        permits: Arc::new(Permits::new(args.kube_api_qps, burst)),
        suspend_detector: SuspendDetector::new(clock, host.wall_clock),
        metrics: Metrics::register(registry),
        statuses,
        events: events.clone(),
        election: election.clone(),
        shutdown: shutdown.clone(),
    };
    let endpoints = endpoints(&shared, file.refused());
    let work = work(shared, file, config_sender);
    runtime.run(endpoints, &shutdown, work).await
}

/// Live: no shoot's probe is long overdue. Ready: the seed's objects are known.
fn endpoints<R: Fn() -> bool + Send + Sync>(
    shared: &Shared,
    refused: R,
) -> Endpoints<impl Fn() -> ProberStatus + Send + Sync + use<R>> {
    let context = shared.clone();
    let probes = Check::new("probes", move || {
        let limit = span(context.config.borrow().probe_timeout + STALLED);
        let Some((namespace, late)) = context.statuses.overdue(limit) else {
            return Ok(());
        };
        let late = late.num_seconds();
        Err(format!("the probe of {namespace} is {late} s overdue"))
    });
    let seed = Arc::clone(&shared.seed);
    let views = Check::new("seed", move || match seed.unknown() {
        Some(what) => Err(format!("{what} are not known")),
        None => Ok(()),
    });
    let context = shared.clone();
    let lookups = health::lookup("/ownership/{name}", move |namespace| {
        owner::ownership(&context, namespace)
    });
    let context = shared.clone();
    let status = move || {
        let config = context.config.borrow().clone();
        ProberStatus::new(&context.statuses, &context.seed, &config, refused())
    };
    Endpoints {
        live: vec![probes],
        ready: vec![views],
        lookups,
        status,
    }
}

async fn follow_config(
    shared: &Shared,
    mut file: ConfigFile<Config>,
    configs: watch::Sender<Arc<Config>>,
    watches: &mut SeedWatches,
) {
    loop {
        tokio::select! {
            biased;
            config = file.next() => {
                for dropped in shared.seed.follow_config(&config, watches) {
                    report_dropped(&dropped, &shared.metrics);
                }
                configs.send_replace(Arc::new(config));
                shared.seed.wakers.wake_all();
            }
            // Without one of its views the prober is blind: the process ends, and is restarted.
            Some(ended) = watches.tasks.join_next() => propagate_panic(ended),
        }
    }
}

/// As the Go original: what the config no longer names is not restored, but nobody has to discover
/// that (D-49).
fn report_dropped(dropped: &DependentView, metrics: &Metrics) {
    for namespace in dropped.held_down() {
        metrics.probes_ended_while_held_down.inc();
        tracing::warn!(namespace, resource = %dropped.resource, "config does not name a resource any more that is held down, it stays at 0");
    }
}

/// Follows the seed and probes, leading or not, until the process ends.
async fn work(shared: Shared, file: ConfigFile<Config>, configs: watch::Sender<Arc<Config>>) {
    let (seed, shutdown) = (&*shared.seed, &shared.shutdown);
    let (sender, changes) = mpsc::channel(CHANGES);
    let mut watches = seed.watch(&shared.config.borrow(), sender);
    let manager = async {
        // No write rests on a probe that was sent before the views were filled.
        let filled = tokio::time::timeout(FILL_WAIT, seed.filled());
        if let Some(Err(_)) = shutdown.run_until_cancelled(filled).await {
            tracing::warn!("not all of the seed's objects are known yet, starting anyway");
        }
        Manager::new(shared.clone()).run(changes).await;
    };
    let election = async {
        seed.clusters.live().await;
        tracing::info!(clusters = seed.clusters.all().len(), "prober runs");
        shared.election.elected().await;
        // Who gains leadership restores in a shoot only after its Cluster was read again. The tasks
        // are woken now and by that.
        seed.clusters.relist();
    };
    let follow = follow_config(&shared, file, configs, &mut watches);
    tokio::join!(
        manager,
        shutdown.run_until_cancelled(election),
        shutdown.run_until_cancelled(follow),
        shutdown.run_until_cancelled(shared.suspend_detector.run())
    );
    // The views outlive the tasks of shoots, which read them to their end.
    watches.end().await;
}
