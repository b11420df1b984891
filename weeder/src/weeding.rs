//! The work: tells the core what the watches show, and does what is due.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use common::follow::follow;
use common::leader_election::Fence;
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::core::deletion::Deletion;
use crate::core::namespaces::Namespaces;
use crate::core::news::{Change, Event, Report};
use crate::core::readiness::Slice;
use crate::core::verdict::{Weed, judge};
use crate::delete::{Answer, delete};
use crate::metrics::Metrics;
use crate::pod::Pod;
use crate::pulse::{BEAT, Pulse};
use crate::slice::{EndpointSlice, SERVICE_NAME};
use crate::watch::Courier;

/// Changes that may wait to be followed; more of them hold up the watch.
const CHANGES: usize = 256;

/// By what the rest of the process sees how the work goes. Clones share what they show.
#[derive(Clone, Debug, Default)]
pub struct Instruments {
    /// For `/metrics`.
    pub metrics: Metrics,
    /// For `/healthz` and `/readyz`.
    pub pulse: Pulse,
}

/// Weeds until cancelled. Nothing is deleted while `fence` is closed; what is watched is watched all the same.
pub async fn weed(client: Client, config: Config, fence: Fence, instruments: Instruments, cancelled: CancellationToken) {
    let config = Arc::new(config);
    let (slices_in, slices) = mpsc::channel(CHANGES);
    let (pods_in, pods) = mpsc::channel(CHANGES);
    let mut watches = JoinSet::new();
    let watch = Watch {
        client: client.clone(),
        config: Arc::clone(&config),
        metrics: instruments.metrics.clone(),
        cancelled: cancelled.clone(),
    };
    watches.spawn(watch.clone().slices(slices_in));
    watches.spawn(watch.pods(pods_in));
    let namespaces = Namespaces::new(Arc::clone(&config));
    let Instruments { metrics, pulse } = instruments;
    let weeding = Weeding { client, config, fence, metrics, pulse, namespaces, deletions: JoinSet::new(), sent: HashMap::new() };
    weeding.run(slices, pods, cancelled).await;
    while watches.join_next().await.is_some() {}
}

/// What both watches need.
#[derive(Clone)]
struct Watch {
    client: Client,
    config: Arc<Config>,
    metrics: Metrics,
    cancelled: CancellationToken,
}

impl Watch {
    async fn slices(self, changes: mpsc::Sender<Change<Slice>>) {
        let Self { client, config, metrics, cancelled } = self;
        let names: Vec<&str> = config.services.iter().map(|service| service.name.as_str()).collect();
        let selected = watcher::Config::default().labels(&format!("{SERVICE_NAME} in ({})", names.join(",")));
        let api: Api<DeserializeGuard<EndpointSlice>> = Api::all(client);
        let prune = move |slice: EndpointSlice| slice.pruned(&config.services);
        follow(api, selected, Courier::new("endpointslices", prune, changes, metrics), cancelled).await;
    }

    async fn pods(self, changes: mpsc::Sender<Change<Weed>>) {
        let Self { client, config, metrics, cancelled } = self;
        let selector = config.common_selector();
        if selector.is_nothing() {
            // No pod is of interest, and that is known without asking. Who receives this cannot have ended yet.
            let _ = changes.send(Change::Listed { objects: HashMap::new(), unreadable: HashSet::new() }).await;
            return cancelled.cancelled().await;
        }
        let selected = watcher::Config::default().labels(&selector.to_string());
        let api: Api<DeserializeGuard<Pod>> = Api::all(client);
        let prune = move |pod: Pod| judge(&pod, &config.services).ok();
        follow(api, selected, Courier::new("pods", prune, changes, metrics), cancelled).await;
    }
}

struct Weeding {
    client: Client,
    config: Arc<Config>,
    fence: Fence,
    metrics: Metrics,
    pulse: Pulse,
    namespaces: Namespaces,
    deletions: JoinSet<Answer>,
    /// What was sent and has not ended yet.
    sent: HashMap<Id, Deletion>,
}

impl Weeding {
    async fn run(
        mut self,
        mut slices: mpsc::Receiver<Change<Slice>>,
        mut pods: mpsc::Receiver<Change<Weed>>,
        cancelled: CancellationToken,
    ) {
        let mut leads = false;
        loop {
            self.pulse.beat(self.namespaces.is_filled());
            self.metrics.namespaces(self.namespaces.len());
            let beat = Instant::now() + BEAT;
            let next = self.namespaces.next().map_or(beat, |next| next.min(beat));
            tokio::select! {
                () = cancelled.cancelled() => break,
                () = self.fence.opened(), if !leads => {
                    leads = true;
                    self.namespaces.lead(Instant::now());
                }
                Some(change) = slices.recv() => self.namespaces.slices(change, Instant::now()),
                Some(change) = pods.recv() => self.namespaces.pods(change),
                Some(ended) = self.deletions.join_next_with_id(), if !self.deletions.is_empty() => self.ended(ended),
                () = sleep_until(next) => {}
            }
            for deletion in self.namespaces.due(Instant::now()) {
                let (client, fence, sent) = (self.client.clone(), self.fence.clone(), deletion.clone());
                let task = self.deletions.spawn(async move { delete(client, &fence, &sent).await });
                self.sent.insert(task.id(), deletion);
            }
            for report in self.namespaces.reports() {
                self.metrics.window(report.event);
                self.log(&report);
            }
        }
        // A DELETE that is cut off may land or not; either is fine, and nobody waits 10 s for it.
        self.deletions.shutdown().await;
    }

    fn ended(&mut self, ended: Result<(Id, Answer), JoinError>) {
        let (id, answer) = match ended {
            Ok(ended) => ended,
            // The panic itself is in the log already.
            Err(error) => (error.id(), Answer::NoAnswer),
        };
        self.metrics.deletion(answer);
        if let Some(deletion) = self.sent.remove(&id) {
            self.namespaces.ended(&deletion, answer.outcome(), Instant::now());
        }
    }

    fn log(&self, report: &Report) {
        let service = self.config.services.get(report.service).map(|service| service.name.as_str());
        let namespace = &report.namespace;
        match report.event {
            Event::Opened(cause) => {
                let seconds = self.config.watch_duration.as_secs_f64();
                tracing::info!(
                    namespace,
                    service,
                    cause = cause.as_str(),
                    seconds,
                    "crash-looping dependants are deleted from now on"
                );
            }
            Event::Closed(end) => tracing::info!(namespace, service, end = end.as_str(), "dependants are left alone again"),
        }
    }
}
