//! The prober's task of one shoot, the only one that writes for it.

use std::sync::Arc;

use prober_core::config::ResourceRef;
use prober_core::shoot::{Environment, Input, Report, Start};
use tokio_util::sync::CancellationToken;

use crate::driver::{Driver, Reporter};
use crate::observability::report::{ShootReporter, report_options};
use crate::observability::shoot_statuses::StatusHandle;
use crate::seed::ClusterState;
use crate::shared::Shared;
use crate::shoot_client::error::ProbeError;
use crate::write::WriteError;

/// Reports in the shoot's status, the log, metrics and Events.
pub struct AgentReporter {
    status: StatusHandle,
}

impl Reporter for AgentReporter {
    fn prepare(&mut self, env: &mut Environment<'_>) {
        if env.paused.is_some() {
            report_options(&self.status, env.options);
        }
    }

    fn report(driver: &mut Driver<Self>, report: Report, refused: Option<WriteError>) {
        driver.reports().report(report, driver.probe_began, refused);
    }

    fn probe_failed(driver: &mut Driver<Self>, error: &ProbeError) {
        driver.reports().probe_failed(error);
    }
}

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
        driver.reports().update_status();
        driver
    }

    /// Probes until cancelled; returns what the shoot's machine holds down then.
    pub async fn run(mut self, cancelled: CancellationToken) -> Vec<ResourceRef> {
        while cancelled.run_until_cancelled(self.step()).await.is_some() {
            self.reports().update_status();
        }
        self.reports().probe_ended();
        self.machine.held_down().cloned().collect()
    }

    pub(crate) fn reports(&self) -> ShootReporter<'_> {
        ShootReporter {
            shared: &self.shared,
            namespace: &self.namespace,
            config: &self.config,
            machine: &self.machine,
            status: &self.reporter.status,
        }
    }
}
