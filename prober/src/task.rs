//! The prober's task of one shoot, the only one that writes for it.

use std::sync::Arc;

use common::process::LAST_ANSWERS;
use prober_core::config::ResourceRef;
use prober_core::shoot::Start;
use prober_core::verdict::Verdict;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::observability::report::AgentReporter;
use crate::seed::ClusterState;
use crate::shared::Shared;

/// What ends a probe.
pub(crate) struct Ends {
    /// Also cancelled at the end of the process.
    pub shoot: CancellationToken,
    pub process: CancellationToken,
}

/// Probes a shoot until cancelled; returns what is held down then. At the end of the process that
/// includes the writes that were under way. A `decree` takes the place of what probes would say.
pub(crate) async fn run(
    shared: Shared,
    namespace: &str,
    cluster: Arc<ClusterState>,
    start: Start,
    decree: Option<Verdict>,
    ends: Ends,
) -> Vec<ResourceRef> {
    let statuses = shared.statuses.clone();
    let reporter = |first_probe| AgentReporter::new(&statuses, namespace, first_probe);
    let mut driver = Driver::new(shared, namespace, cluster, start, reporter);
    if let Some(verdict) = decree {
        driver.decree(verdict);
    }
    driver.wake();
    while ends
        .shoot
        .run_until_cancelled(driver.step())
        .await
        .is_some()
    {}
    if ends.process.is_cancelled() && timeout(LAST_ANSWERS, driver.finish()).await.is_err() {
        tracing::warn!("a write has had no answer until the end, it may have been made");
    }
    driver.end().held_down().cloned().collect()
}
