//! The prober as a process: config, client, views, manager.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use common::agent_runtime::{AgentRuntime, Endpoints};
use common::config_file::ConfigFile;
use common::flags::{Agent, AgentArgs};
use common::health::{self, Check};
use common::leader_election::Fence;
use common::metrics::register_seed_known;
use common::process::propagate_panic;
use prober_core::config::Config;
use prober_core::options::Refused;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config;
use crate::manager::Manager;
use crate::metrics::Metrics;
use crate::owner_check;
use crate::refused_settings;
use crate::seed::dependent::DependentView;
use crate::seed::watch_scope::WatchScope;
use crate::seed::{Seed, Watches};
use crate::shared::Shared;
use crate::shoot_client::resources::Resources;
use crate::shoot_statuses::ShootStatuses;
use crate::status::ProberStatus;
use crate::suspend_detector::SuspendDetector;
use crate::write::Writer;

/// The Lease that replicas of the prober elect their leader by (rule 79).
const LEASE: &str = "dwd-prober-leader-election";
/// Cluster changes that may wait to be followed; more of them hold up the watch.
const CHANGES: usize = 256;
/// How long the first probes wait for views that cannot be filled, such as that of a kind that does
/// not exist.
const FILL_WAIT: Duration = Duration::from_secs(5);

/// A probe that is overdue by probeTimeout and this time means that the probe loop stalls.
const STALLED: Duration = Duration::from_secs(60);

pub async fn run(args: AgentArgs, shutdown: CancellationToken) -> anyhow::Result<()> {
    let clock = Clock::start();
    let (config, mut file) = ConfigFile::open(&args.config_file, config::read)?;
    let mut frame = AgentRuntime::open(Agent::Prober, &args, LEASE).await?;
    file.report_to(
        &mut frame.registry,
        frame.events.clone(),
        frame.self_reference.clone(),
    );
    let burst = NonZeroU32::new(u32::try_from(args.kube_api_burst).unwrap_or(u32::MAX))
        .unwrap_or(NonZeroU32::MIN);
    let statuses = ShootStatuses::new(clock, args.metrics_per_shoot);
    frame
        .registry
        .register_collector(Box::new(statuses.clone()));
    let (config_sender, configs) = watch::channel(Arc::new(config));
    let seed = Arc::new(Seed::new(frame.client.clone(), WatchScope::Seed));
    let known = Arc::clone(&seed);
    register_seed_known(&mut frame.registry, move || known.is_known());
    refused_settings::register(&mut frame.registry, Arc::clone(&seed));
    let write_fence = if frame.dry_run {
        Fence::always_closed()
    } else {
        frame.fence.clone()
    };
    let suspend_detector = SuspendDetector::new(clock);
    let shared = Shared {
        clock,
        resources: Arc::new(Resources::of_system()),
        writer: Arc::new(Writer::new(
            frame.client.clone(),
            args.kube_api_qps,
            burst,
            write_fence,
            suspend_detector.clone(),
        )),
        suspend_detector,
        dry_run: frame.dry_run,
        seed,
        config: configs,
        metrics: Metrics::register(&mut frame.registry),
        statuses,
        events: frame.events.clone(),
        lead: frame.fence.clone(),
        role: frame.role.clone(),
    };
    let shown = shown(shared.clone(), file.refused());
    let work = work(shared, file, config_sender, shutdown);
    frame.run(shown, work).await
}

/// As the Go original: what the config names no more is not restored, but nobody has to discover it
/// (D-49).
fn report_dropped(dropped: &DependentView, metrics: &Metrics) {
    for namespace in dropped.held_down() {
        metrics.probes_ended_while_held_down.inc();
        tracing::warn!(namespace, resource = %dropped.resource, "config does not name a resource any more that is held down, it stays at 0");
    }
}

/// Live: no shoot's probe is long overdue. Ready: the seed's objects are known.
fn shown(
    shared: Shared,
    refused: impl Fn() -> bool + Send + Sync,
) -> Endpoints<impl Fn() -> ProberStatus + Send + Sync> {
    let (statuses, config, seed) = (
        shared.statuses.clone(),
        shared.config.clone(),
        Arc::clone(&shared.seed),
    );
    let probes = Check::new("probes", move || {
        let limit =
            TimeDelta::from_std(config.borrow().probe_timeout + STALLED).unwrap_or(TimeDelta::MAX);
        match statuses.overdue(limit) {
            Some((namespace, late)) => Err(format!(
                "the look at {namespace} is {} s overdue",
                late.num_seconds()
            )),
            None => Ok(()),
        }
    });
    let views = Check::new("seed", move || {
        seed.unknown()
            .map_or(Ok(()), |what| Err(format!("{what} are not known")))
    });
    let owned = shared.clone();
    let status = move || {
        ProberStatus::new(
            &shared.statuses,
            shared.clock,
            shared.seed.unknown(),
            &shared.config.borrow(),
            refused(),
        )
    };
    let lookups = health::lookup("/ownership/{name}", move |namespace| {
        owner_check::ownership(&owned, namespace)
    });
    Endpoints {
        live: vec![probes],
        ready: vec![views],
        lookups,
        status,
    }
}

/// Applies what becomes of the config.
async fn follow_config(
    shared: Shared,
    file: &mut ConfigFile<Config>,
    configs: &watch::Sender<Arc<Config>>,
    watches: &mut Watches,
) {
    loop {
        tokio::select! {
            config = file.next() => {
                let dropped = shared.seed.follow_config(&config, watches);
                dropped.iter().for_each(|dropped| report_dropped(dropped, &shared.metrics));
                configs.send_replace(Arc::new(config));
            }
            // Without one of its views the prober is blind: the process ends, and another one
            // begins.
            Some(ended) = watches.tasks.join_next() => propagate_panic(ended),
        }
    }
}

/// Follows the seed and probes, leading or not, until `shutdown`.
async fn work(
    shared: Shared,
    mut file: ConfigFile<Config>,
    configs: watch::Sender<Arc<Config>>,
    shutdown: CancellationToken,
) {
    let Shared {
        seed,
        lead,
        suspend_detector,
        events,
        ..
    } = shared.clone();
    let (changes, receiver) = mpsc::channel(CHANGES);
    let report = move |namespace: &str, refused: &Refused| {
        refused_settings::report(&events, namespace, refused)
    };
    let mut watches = seed.watch(&shared.config.borrow(), changes, report);
    let follow = follow_config(shared.clone(), &mut file, &configs, &mut watches);
    let owners = owner_check::run(shared.clone(), shutdown.clone());
    let manager = async {
        // First probes that could not know what is held down would be spread, and would find that
        // out of date.
        let filled = tokio::time::timeout(FILL_WAIT, seed.filled());
        if shutdown
            .run_until_cancelled(filled)
            .await
            .is_some_and(|filled| filled.is_err())
        {
            tracing::warn!("not all of the seed's objects are known yet, starting all the same");
        }
        Manager::new(shared).run(receiver, shutdown.clone()).await;
    };
    let lead = async {
        seed.clusters.live().await;
        tracing::info!(clusters = seed.clusters.all().len(), "prober runs");
        lead.opened().await;
        // Whoever gains the lead restores in a shoot only after its Cluster has been read again.
        // The tasks are woken now and by that.
        seed.clusters.reread();
    };
    let wakes = seed.clusters.each_time_live(|| seed.wakers.wake_all());
    tokio::join!(
        owners,
        manager,
        shutdown.run_until_cancelled(lead),
        shutdown.run_until_cancelled(wakes),
        shutdown.run_until_cancelled(follow),
        shutdown.run_until_cancelled(suspend_detector.run())
    );
    // The views outlive the probes: a flow that is ending still reads them.
    watches.end().await;
}
