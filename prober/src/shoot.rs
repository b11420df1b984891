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

    /// Probes until cancelled; returns what the shoot's machine holds down then.
    pub async fn run(mut self, cancelled: CancellationToken) -> Vec<ResourceRef> {
        while cancelled.run_until_cancelled(self.step()).await.is_some() {
            self.update_status();
        }
        self.probe_ended();
        self.machine.held_down().cloned().collect()
    }
}
