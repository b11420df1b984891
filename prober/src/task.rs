//! The prober's task of one shoot, the only one that writes for it.

use std::sync::Arc;

use common::process::LAST_ANSWERS;
use prober_core::config::ResourceRef;
use prober_core::shoot::Start;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::observability::report::AgentReporter;
use crate::seed::ClusterState;
use crate::shared::Shared;

/// Probes a shoot until cancelled; returns what is held down then, with the writes that were under
/// way.
pub(crate) async fn run(
    shared: Shared,
    namespace: &str,
    cluster: Arc<ClusterState>,
    start: Start,
    cancelled: CancellationToken,
) -> Vec<ResourceRef> {
    let statuses = shared.statuses.clone();
    let reporter = |first_probe| AgentReporter::new(&statuses, namespace, first_probe);
    let mut driver = Driver::new(shared, namespace, cluster, start, reporter);
    driver.wake();
    while cancelled.run_until_cancelled(driver.step()).await.is_some() {}
    if timeout(LAST_ANSWERS, driver.finish()).await.is_err() {
        tracing::warn!("a write has had no answer until the end, it may have been made");
    }
    driver.end().held_down().cloned().collect()
}
