//! The prober as a process: config, client, views, manager.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use common::flags::AgentArgs;
use common::frame::{Checks, Frame};
use common::health::Check;
use common::leader_election::Fence;
use tokio::sync::{SetOnce, mpsc};
use tokio_util::sync::CancellationToken;

use crate::board::Board;
use crate::clock::Clock;
use crate::config::{Config, Loaded};
use crate::manager::Manager;
use crate::metrics::Metrics;
use crate::seed::Seed;
use crate::shoot::Shared;
use crate::write::Writer;

/// The Lease that replicas of the prober elect their leader by (rule 79).
const LEASE: &str = "dwd-prober-leader-election";
/// Cluster changes that may wait to be followed; more of them hold up the watch.
const CHANGES: usize = 256;
/// How long the first probes wait for views that cannot be filled, such as that of a kind that does not exist.
const FILL_WAIT: Duration = Duration::from_secs(5);

/// A look that is overdue by probeTimeout and this time means that the probe loop stalls.
const STALLED: Duration = Duration::from_secs(60);

/// Runs the prober until `shutdown`.
///
/// # Errors
/// When it cannot start (config file, kubeconfig, ports), or when leadership is lost.
pub async fn run(args: AgentArgs, shutdown: CancellationToken) -> anyhow::Result<()> {
    let clock = Clock::start();
    let Loaded { config, warnings } = Config::load(&args.config_file)?;
    for warning in warnings {
        tracing::warn!(file = %args.config_file.display(), "{warning}");
    }
    let mut frame = Frame::open(&args, LEASE).await?;
    let burst = u32::try_from(args.kube_api_burst).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    let metrics = Metrics::register(&mut frame.registry);
    let board = Board::new(clock);
    frame.registry.register_collector(Box::new(board.clone()));
    let shared = Shared {
        clock,
        writer: Arc::new(Writer::new(frame.client.clone(), args.kube_api_qps, burst, frame.fence.clone())),
        seed: Arc::new(Seed::new(frame.client.clone(), &config)),
        config: Arc::new(config),
        metrics,
        board,
        events: frame.events.clone(),
        leading: Arc::new(SetOnce::new()),
    };
    let checks = checks(&shared);
    let work = work(shared, frame.fence.clone(), shutdown);
    frame.run(checks, work).await
}

/// Live: no shoot's look is long overdue. Ready: the seed's objects are known.
fn checks(shared: &Shared) -> Checks {
    let limit = TimeDelta::from_std(shared.config.probe_timeout + STALLED).unwrap_or(TimeDelta::MAX);
    let board = shared.board.clone();
    let probes = Check::new("probes", move || match board.overdue(limit) {
        Some((namespace, late)) => Err(format!("the look at {namespace} is {} s overdue", late.num_seconds())),
        None => Ok(()),
    });
    let seed = Arc::clone(&shared.seed);
    let views = Check::new("seed", move || seed.unknown().map_or(Ok(()), |what| Err(format!("{what} are not known"))));
    Checks { live: vec![probes], ready: vec![views] }
}

/// Follows the seed, and probes once this process leads, until `shutdown`.
async fn work(shared: Shared, fence: Fence, shutdown: CancellationToken) {
    let seed = Arc::clone(&shared.seed);
    let leading = Arc::clone(&shared.leading);
    let (changes, receiver) = mpsc::channel(CHANGES);
    // The views outlive the probes: a flow that is ending still reads them.
    let views_end = CancellationToken::new();
    let mut views = seed.watch(changes, &views_end);
    let manager = Manager::new(shared).run(receiver, shutdown.clone());
    let lead = async {
        fence.opened().await;
        if tokio::time::timeout(FILL_WAIT, seed.filled()).await.is_err() {
            tracing::warn!("not all of the seed's objects are known yet, starting all the same");
        }
        // Whoever gains the lead writes for a shoot only after its Cluster has been read anew.
        seed.clusters.reread();
        seed.clusters.live().await;
        tracing::info!(clusters = seed.clusters.len(), "prober runs");
        // Fails only if it was set before.
        let _ = leading.set(());
    };
    tokio::join!(manager, shutdown.run_until_cancelled(lead));
    views_end.cancel();
    while views.join_next().await.is_some() {}
}
