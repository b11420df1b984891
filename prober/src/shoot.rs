//! The prober's task of one shoot, the only one that writes for it.

use std::sync::Arc;

use prober_core::config::ResourceRef;
use prober_core::shoot::{Input, Start};
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::observability::report::AgentReporter;
use crate::seed::ClusterState;
use crate::shared::Shared;

impl Driver<AgentReporter> {
    pub fn start(
        shared: Shared,
        namespace: &str,
        cluster: Arc<ClusterState>,
        start: Start,
    ) -> Self {
        let statuses = shared.statuses.clone();
        let mut driver = Self::new(shared, namespace, cluster, start, |machine| AgentReporter {
            status: statuses.register(namespace.to_owned(), machine.due()),
        });
        driver.feed(Input::Woken);
        driver.update_status();
        driver
    }
}

/// Probes a shoot until cancelled; returns what is held down then.
pub async fn run(
    shared: Shared,
    namespace: &str,
    cluster: Arc<ClusterState>,
    start: Start,
    cancelled: CancellationToken,
) -> Vec<ResourceRef> {
    let mut driver = Driver::start(shared, namespace, cluster, start);
    while cancelled.run_until_cancelled(driver.step()).await.is_some() {
        driver.update_status();
    }
    driver.probe_ended();
    driver.machine.held_down().cloned().collect()
}
