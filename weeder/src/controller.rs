//! The controller: applies what the watches observe to the core, and sends the deletions that are
//! due.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

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
use weeder_core::deletion::{Deletion, Outcome};
use weeder_core::namespaces::Namespaces;
use weeder_core::window::WindowChange;

use crate::delete::delete;
use crate::heartbeat::{HEARTBEAT, Heartbeat};
use crate::metrics::{WeederMetrics, count};
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
    deletions: JoinSet<(Deletion, Outcome, &'static str)>,
}

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
        }
    }

    /// Runs until cancelled. After a change of the Services or their selectors all begins again, as
    /// at a start of the process.
    pub async fn run(mut self, cancelled: CancellationToken) {
        loop {
            cancelled.run_until_cancelled(self.work()).await;
            self.end().await;
            if cancelled.is_cancelled() {
                return;
            }
            tracing::info!("Services or their selectors have changed, starting again");
            self.namespaces.drop_windows(Instant::now().into());
            self.report();
            self = Self::new(self.client, self.configs, self.election, self.instruments);
        }
    }

    /// Works until the Services or their selectors change. Watches whether this replica leads or
    /// not, and deletes while it leads.
    async fn work(&mut self) {
        let now = || Instant::now().into_std();
        let mut leads = false;
        loop {
            self.report();
            let heartbeat = Instant::now() + HEARTBEAT;
            let next = self.namespaces.next();
            let next = next.map_or(heartbeat, |next| heartbeat.min(next.into()));
            tokio::select! {
                () = self.election.elected(), if !leads => {
                    leads = true;
                    self.namespaces.lead(now());
                }
                Ok(()) = self.configs.changed() => {
                    let config = Arc::clone(&self.configs.borrow());
                    if config.services != self.config.services {
                        return;
                    }
                    self.config = Arc::clone(&config);
                    self.namespaces.reconfigure(config, now());
                }
                Some(change) = self.watches.slices.recv() => self.namespaces.apply_slices(change, now()),
                Some(change) = self.watches.pods.recv() => self.namespaces.apply_pods(change, now()),
                Some(ended) = self.watches.tasks.join_next() => propagate_panic(ended),
                Some(Ok((deletion, outcome, result))) = self.deletions.join_next() => self.ended(&deletion, outcome, result),
                () = sleep_until(next) => {}
            }
            for deletion in self.namespaces.due(now()) {
                self.send(deletion);
            }
        }
    }

    /// Waits for the last answers. A DELETE that is cut off may land or not; either is fine.
    async fn end(&mut self) {
        let answers = async {
            while let Some(Ok((deletion, outcome, result))) = self.deletions.join_next().await {
                self.ended(&deletion, outcome, result);
            }
        };
        if timeout(LAST_ANSWERS, answers).await.is_err() {
            tracing::warn!(
                count = self.deletions.len(),
                "deletions have had no answer until the end"
            );
        }
        self.deletions.shutdown().await;
        self.watches.tasks.shutdown().await;
    }

    fn send(&mut self, deletion: Deletion) {
        let (client, election) = (self.client.clone(), self.election.clone());
        self.deletions.spawn(async move {
            let delete = delete(client, &election, &deletion);
            // The log has the panic already.
            let ended = AssertUnwindSafe(delete).catch_unwind().await;
            let no_answer = (Outcome::Unknown, ApiFailure::NoAnswer.into_str());
            let (outcome, result) = ended.unwrap_or(no_answer);
            (deletion, outcome, result)
        });
    }

    fn ended(&mut self, deletion: &Deletion, outcome: Outcome, result: &'static str) {
        let Instruments {
            metrics,
            activity,
            events,
            ..
        } = &self.instruments;
        count(&metrics.deletions, "result", result);
        activity.deletion(deletion, result);
        if outcome == Outcome::Deleted {
            let pod = &deletion.pod;
            let about = format!("Pod {}/{}", pod.namespace, pod.name);
            let message = format!("crash-looping pod deleted because {}", deletion.because());
            events.normal(&about, "PodDeleted", &message);
        }
        self.namespaces
            .ended(deletion, outcome, Instant::now().into());
    }

    /// Reports that the loop turns, and what has changed.
    fn report(&mut self) {
        let Instruments {
            metrics,
            heartbeat,
            activity,
            ..
        } = &self.instruments;
        heartbeat.beat(self.namespaces.observes());
        metrics.namespaces.set(self.namespaces.count() as i64);
        let open = self.namespaces.open_windows();
        metrics.windows_open.set(open as i64);
        for event in self.namespaces.take_events() {
            activity.window(&event);
            let (namespace, service) = (event.namespace, event.service);
            match event.change {
                WindowChange::Opened(reason) => {
                    let cause = reason.into_str();
                    let seconds = self.config.watch_duration.as_secs_f64();
                    count(&metrics.opened, "reason", cause);
                    tracing::info!(namespace, %service, cause, seconds, "crash-looping dependants are deleted from now on");
                }
                WindowChange::Closed(reason) => {
                    let end = reason.into_str();
                    count(&metrics.closed, "reason", end);
                    tracing::info!(namespace, %service, end, "dependants are left alone again");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
