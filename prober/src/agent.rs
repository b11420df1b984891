//! The prober as a process: config, client, views, manager.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use common::flags::AgentArgs;
use common::leader_election::{Elector, Fence, campaign, identity};
use common::seed_client;
use tokio::sync::{SetOnce, mpsc};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{Config, Loaded};
use crate::manager::Manager;
use crate::seed::Seed;
use crate::shoot::Shared;
use crate::write::Writer;

/// The Lease that replicas of the prober elect their leader by (rule 79).
const LEASE: &str = "dwd-prober-leader-election";
/// Cluster changes that may wait to be followed; more of them hold up the watch.
const CHANGES: usize = 256;
/// How long the first probes wait for views that cannot be filled, such as that of a kind that does not exist.
const FILL_WAIT: Duration = Duration::from_secs(5);

/// Runs the prober until `shutdown`.
///
/// # Errors
/// When it cannot start (config file, kubeconfig), or when leadership is lost.
pub async fn run(args: AgentArgs, shutdown: CancellationToken) -> anyhow::Result<()> {
    let clock = Clock::start();
    let Loaded { config, warnings } = Config::load(&args.config_file)?;
    for warning in warnings {
        tracing::warn!(file = %args.config_file.display(), "{warning}");
    }
    let client = seed_client::connect(args.kubeconfig.as_deref()).await.context("no access to the seed")?;
    let (keeper, fence) = Fence::closed();
    let election = args.leader_election;
    let (elector, fence) = if election.enabled {
        (Some(Elector::new(client.clone(), election, LEASE, identity(), keeper)), fence)
    } else {
        (None, Fence::always_open())
    };
    let burst = u32::try_from(args.kube_api_burst).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
    let writer = Arc::new(Writer::new(client.clone(), args.kube_api_qps, burst, fence.clone()));
    let seed = Arc::new(Seed::new(client, &config));
    let shared = Shared { clock, config: Arc::new(config), seed, writer, leading: Arc::new(SetOnce::new()) };
    let work = work(shared, fence, shutdown);
    match elector {
        Some(elector) => Ok(campaign(elector, work).await?),
        None => {
            work.await;
            Ok(())
        }
    }
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
