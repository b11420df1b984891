//! The controller: applies what the watches observe to the core, and sends the deletions that are
//! due.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use common::access_review::{Right, allowed_everywhere};
use common::api_failure::ApiFailure;
use common::events::Events;
use common::leader_election::Election;
use common::process::{LAST_ANSWERS, propagate_panic};
use futures::FutureExt;
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use weeder_core::config::Config;
use weeder_core::deletion::Deletion;
use weeder_core::namespaces::Namespaces;
use weeder_core::window::{WindowChange, WindowEvent};

use crate::delete::{DeleteResult, delete, log_dry_run};
use crate::heartbeat::{HEARTBEAT, Heartbeat};
use crate::metrics::WeederMetrics;
use crate::status::Activity;
use crate::watches::Watches;

/// The work as the rest of the process observes it. Clones share what they show.
#[derive(Clone, Debug, Default)]
pub struct Instruments {
    /// For `/metrics`.
    pub metrics: WeederMetrics,
    /// For `/healthz` and `/readyz`.
    pub heartbeat: Heartbeat,
    /// For `/statusz`.
    pub activity: Activity,
    pub events: Events,
}

pub struct Controller {
    client: Client,
    configs: watch::Receiver<Arc<Config>>,
    config: Arc<Config>,
    watches: Watches,
    election: Election,
    instruments: Instruments,
    namespaces: Namespaces,
    deletions: JoinSet<(Deletion, DeleteResult)>,
    /// At most one: whether pods may be deleted everywhere.
    reviews: JoinSet<Option<bool>>,
    /// Start of the last one.
    reviewed: Option<Instant>,
}

/// A review is believed for this long: as long as the longest wait after a refusal.
const REVIEWED_FOR: Duration = Duration::from_secs(60);

impl Controller {
    /// Starts to watch. In a dry run what would be deleted is only logged and counted.
    pub fn new(
        client: Client,
        mut configs: watch::Receiver<Arc<Config>>,
        election: Election,
        instruments: Instruments,
    ) -> Self {
        let config = Arc::clone(&configs.borrow_and_update());
        Self {
            watches: Watches::start(&client, &config, &instruments.metrics),
            namespaces: Namespaces::new(Arc::clone(&config)),
            client,
            configs,
            config,
            election,
            instruments,
            deletions: JoinSet::new(),
            reviews: JoinSet::new(),
            reviewed: None,
        }
    }

    /// Runs until cancelled. Watches whether this replica leads or not, and deletes while it leads.
    /// A change of the config is applied without a restart: what is known stays known, and windows
    /// that are open go on.
    pub async fn run(mut self, cancelled: CancellationToken) {
        let mut leads = false;
        loop {
            self.observe();
            let heartbeat = Instant::now() + HEARTBEAT;
            let next = self
                .namespaces
                .next(Instant::now().into())
                .map_or(heartbeat, |next| heartbeat.min(next.into()));
            tokio::select! {
                () = cancelled.cancelled() => break,
                () = self.election.elected(), if !leads => {
                    leads = true;
                    self.namespaces.lead(Instant::now().into());
                }
                Ok(()) = self.configs.changed() => self.reconfigure().await,
                Some(change) = self.watches.slices.recv() => {
                    self.namespaces.apply_slices(change, Instant::now().into());
                }
                Some(change) = self.watches.pods.recv() => {
                    self.namespaces.apply_pods(change, Instant::now().into());
                }
                Some(ended) = self.watches.tasks.join_next() => propagate_panic(ended),
                Some(Ok((deletion, result))) = self.deletions.join_next() => {
                    self.ended(&deletion, result);
                }
                Some(Ok(Some(allowed))) = self.reviews.join_next() => self.apply_review(allowed),
                () = sleep_until(next) => {}
            }
            for deletion in self.namespaces.due(Instant::now().into()) {
                self.send(deletion);
            }
            for event in self.namespaces.take_events() {
                self.report(&event);
            }
        }
        let answers = async {
            while let Some(Ok((deletion, result))) = self.deletions.join_next().await {
                self.ended(&deletion, result);
            }
        };
        // A DELETE that is cut off may land or not; either is fine.
        if timeout(LAST_ANSWERS, answers).await.is_err() {
            tracing::warn!(
                count = self.deletions.len(),
                "deletions have had no answer until the end"
            );
        }
        self.deletions.shutdown().await;
        self.reviews.shutdown().await;
        self.watches.tasks.shutdown().await;
    }

    fn observe(&self) {
        let Instruments {
            metrics, heartbeat, ..
        } = &self.instruments;
        heartbeat.beat(self.namespaces.observes());
        metrics.namespaces.set(self.namespaces.count() as i64);
        let open_windows = self.namespaces.open_windows();
        metrics.windows_open.set(open_windows as i64);
    }

    async fn reconfigure(&mut self) {
        let config = Arc::clone(&self.configs.borrow_and_update());
        self.namespaces
            .reconfigure(Arc::clone(&config), Instant::now().into());
        if config.services != self.config.services {
            self.watches.tasks.shutdown().await;
            self.watches = Watches::start(&self.client, &config, &self.instruments.metrics);
        }
        self.config = config;
    }

    fn send(&mut self, deletion: Deletion) {
        let (client, election) = (self.client.clone(), self.election.clone());
        self.deletions.spawn(async move {
            let delete = async {
                if election.is_dry_run() {
                    log_dry_run(&deletion)
                } else {
                    delete(client, &election, &deletion).await
                }
            };
            // The log has the panic already.
            let result = AssertUnwindSafe(delete).catch_unwind().await;
            (
                deletion,
                result.unwrap_or(DeleteResult::Failed(ApiFailure::NoAnswer)),
            )
        });
    }

    fn ended(&mut self, deletion: &Deletion, result: DeleteResult) {
        self.instruments.metrics.deletion(result);
        self.instruments.activity.deletion(deletion, result);
        if result == DeleteResult::Deleted {
            let pod = &deletion.pod;
            let about = format!("Pod {}/{}", pod.namespace, pod.name);
            let message = format!("crash-looping pod deleted because {}", deletion.because());
            self.instruments
                .events
                .normal(&about, "PodDeleted", &message);
        }
        let missed_right = self.namespaces.misses_right();
        let now = Instant::now();
        self.namespaces
            .ended(deletion, result.outcome(), now.into());
        self.log_right(missed_right);
        let is_reviewed = self.reviewed.is_some_and(|then| now - then < REVIEWED_FOR);
        if result == DeleteResult::Failed(ApiFailure::Forbidden) && !is_reviewed {
            self.reviewed = Some(now);
            let client = self.client.clone();
            self.reviews.spawn(async move {
                allowed_everywhere(&client, &Right::core("delete", "pods")).await
            });
        }
    }

    /// Takes in whether pods may be deleted in all namespaces.
    fn apply_review(&mut self, allowed: bool) {
        let missed_right = self.namespaces.misses_right();
        if allowed {
            self.namespaces.find_right();
        } else if !missed_right {
            self.namespaces.miss_right(Instant::now().into());
        }
        self.log_right(missed_right);
    }

    fn log_right(&self, missed_before: bool) {
        match (missed_before, self.namespaces.misses_right()) {
            (false, true) => tracing::error!(
                "the right to delete pods is missing in all namespaces, one DELETE at a time is tried"
            ),
            (true, false) => tracing::info!("pods can be deleted again"),
            _ => {}
        }
    }

    fn report(&self, event: &WindowEvent) {
        self.instruments.metrics.window(event.change);
        self.instruments.activity.window(event);
        let WindowEvent {
            namespace, service, ..
        } = event;
        match event.change {
            WindowChange::Opened(reason) => tracing::info!(
                namespace,
                service = &**service,
                cause = reason.into_str(),
                seconds = self.config.watch_duration.as_secs_f64(),
                "crash-looping dependants are deleted from now on"
            ),
            WindowChange::Closed(reason) => tracing::info!(
                namespace,
                service = &**service,
                end = reason.into_str(),
                "dependants are left alone again"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
