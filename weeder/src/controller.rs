//! The controller: applies what the watches observe to the core, and does what is due.

use std::collections::HashMap;
use std::sync::Arc;

use common::leader_election::Fence;
use common::process::propagate_panic;
use kube::Client;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use weeder_core::config::Config;
use weeder_core::deletion::Deletion;
use weeder_core::namespaces::Namespaces;
use weeder_core::news::{Event, Report};

use crate::delete::{Answer, delete, log_dry_run};
use crate::metrics::Metrics;
use crate::pulse::{BEAT, Pulse};
use crate::status::Activity;
use crate::watches::Watches;

/// What the rest of the process observes of the work. Clones share what they show.
#[derive(Clone, Debug, Default)]
pub struct Instruments {
    /// For `/metrics`.
    pub metrics: Metrics,
    /// For `/healthz` and `/readyz`.
    pub pulse: Pulse,
    /// For `/statusz`.
    pub activity: Activity,
}

/// Runs the controller until cancelled. Nothing is deleted while `fence` is closed; what is watched
/// is watched all the same. A change of the config is applied without a restart: what is known
/// stays known, and windows that are open go on. In a dry run what would be deleted is only logged
/// and counted.
pub async fn run(
    client: Client,
    mut configs: watch::Receiver<Arc<Config>>,
    fence: Fence,
    dry_run: bool,
    instruments: Instruments,
    cancelled: CancellationToken,
) {
    let config = Arc::clone(&configs.borrow_and_update());
    Controller::new(client, config, fence, dry_run, instruments)
        .run(configs, cancelled)
        .await;
}

struct Controller {
    client: Client,
    config: Arc<Config>,
    watches: Watches,
    fence: Fence,
    dry_run: bool,
    instruments: Instruments,
    namespaces: Namespaces,
    deletions: JoinSet<Answer>,
    /// What was sent and has not ended yet.
    sent: HashMap<Id, Deletion>,
}

impl Controller {
    fn new(
        client: Client,
        config: Arc<Config>,
        fence: Fence,
        dry_run: bool,
        instruments: Instruments,
    ) -> Self {
        let watches = Watches::start(&client, &config, &instruments.metrics);
        let namespaces = Namespaces::new(Arc::clone(&config));
        let (deletions, sent) = (JoinSet::new(), HashMap::new());
        Self {
            client,
            config,
            watches,
            fence,
            dry_run,
            instruments,
            namespaces,
            deletions,
            sent,
        }
    }

    async fn run(
        mut self,
        mut configs: watch::Receiver<Arc<Config>>,
        cancelled: CancellationToken,
    ) {
        let mut leads = false;
        loop {
            self.instruments.pulse.beat(self.namespaces.observes());
            self.instruments
                .metrics
                .namespaces
                .set(self.namespaces.count() as i64);
            self.instruments
                .metrics
                .windows_open
                .set(self.namespaces.open_windows() as i64);
            let beat = Instant::now() + BEAT;
            let next = self
                .namespaces
                .next()
                .map_or(beat, |next| beat.min(next.into()));
            tokio::select! {
                () = cancelled.cancelled() => break,
                () = self.fence.opened(), if !leads => {
                    leads = true;
                    self.namespaces.lead(Instant::now().into());
                }
                Ok(()) = configs.changed() => {
                    let config = Arc::clone(&configs.borrow_and_update());
                    self.reconfigure(config).await;
                }
                Some(change) = self.watches.slices.recv() => self.namespaces.slices(change, Instant::now().into()),
                Some(change) = self.watches.pods.recv() => self.namespaces.pods(change, Instant::now().into()),
                Some(ended) = self.watches.tasks.join_next() => propagate_panic(ended),
                Some(ended) = self.deletions.join_next_with_id() => self.ended(ended),
                () = sleep_until(next) => {}
            }
            for deletion in self.namespaces.due(Instant::now().into()) {
                self.send(deletion);
            }
            self.report();
        }
        // A DELETE that is cut off may land or not; either is fine, and nobody waits 10 s for it.
        self.deletions.shutdown().await;
        self.watches.end().await;
    }

    fn send(&mut self, deletion: Deletion) {
        let (client, fence, sent, dry_run) = (
            self.client.clone(),
            self.fence.clone(),
            deletion.clone(),
            self.dry_run,
        );
        let send = async move {
            if dry_run {
                log_dry_run(&sent)
            } else {
                delete(client, &fence, &sent).await
            }
        };
        let task = self.deletions.spawn(send);
        self.sent.insert(task.id(), deletion);
    }

    async fn reconfigure(&mut self, config: Arc<Config>) {
        self.namespaces.reconfigure(Arc::clone(&config));
        // Reports name Services by their places in the config before.
        self.report();
        if config.services != self.config.services {
            let restarted = Watches::start(&self.client, &config, &self.instruments.metrics);
            std::mem::replace(&mut self.watches, restarted).end().await;
        }
        self.config = config;
    }

    fn report(&mut self) {
        for report in self.namespaces.reports() {
            self.instruments.metrics.window(report.event);
            self.show(&report);
        }
    }

    fn ended(&mut self, ended: Result<(Id, Answer), JoinError>) {
        let (id, answer) = match ended {
            Ok(ended) => ended,
            // The panic itself is in the log already.
            Err(error) => (error.id(), Answer::NoAnswer),
        };
        self.instruments.metrics.deletion(answer);
        if let Some(deletion) = self.sent.remove(&id) {
            self.instruments.activity.deletion(&deletion.pod, answer);
            self.namespaces
                .ended(&deletion, answer.outcome(), Instant::now().into());
        }
    }

    fn show(&self, report: &Report) {
        let service = self
            .config
            .services
            .get(report.service)
            .map_or("", |service| &service.name);
        let namespace = &report.namespace;
        self.instruments
            .activity
            .window(namespace, service, report.event);
        match report.event {
            Event::Opened(cause) => {
                let (cause, seconds) = (cause.into_str(), self.config.watch_duration.as_secs_f64());
                tracing::info!(
                    namespace,
                    service,
                    cause,
                    seconds,
                    "crash-looping dependants are deleted from now on"
                );
            }
            Event::Closed(end) => tracing::info!(
                namespace,
                service,
                end = end.into_str(),
                "dependants are left alone again"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
