//! The two watches, of EndpointSlices and of pods, each in a task of its own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use common::change::{Change, Key};
use common::follow::{Follower, follow};
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use weeder_core::config::Config;
use weeder_core::readiness::Slice;
use weeder_core::verdict::{DeletionCandidate, judge};

use crate::metrics::Metrics;
use crate::pod::Pod;
use crate::slice::{EndpointSlice, SERVICE_NAME};

/// Changes that may wait to be followed; more of them hold up the watch.
const CHANGES: usize = 256;

/// Both watches, for as long as one config asks for the same Services and pods.
pub struct Watches {
    pub slices: mpsc::Receiver<Change<Slice>>,
    /// Deletion candidates.
    pub pods: mpsc::Receiver<Change<DeletionCandidate>>,
    /// One for each; both run until [`Watches::end`].
    pub tasks: JoinSet<()>,
    ended: CancellationToken,
}

impl Watches {
    pub fn start(client: &Client, config: &Arc<Config>, metrics: &Metrics) -> Self {
        let (slices_in, slices) = mpsc::channel(CHANGES);
        let (pods_in, pods) = mpsc::channel(CHANGES);
        let ended = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let forwarder = ChangeForwarder {
            what: "endpointslices",
            changes: slices_in,
            metrics: metrics.clone(),
        };
        tasks.spawn(watch_slices(
            client.clone(),
            Arc::clone(config),
            forwarder,
            ended.clone(),
        ));
        let forwarder = ChangeForwarder {
            what: "pods",
            changes: pods_in,
            metrics: metrics.clone(),
        };
        tasks.spawn(watch_pods(
            client.clone(),
            Arc::clone(config),
            forwarder,
            ended.clone(),
        ));
        Self {
            slices,
            pods,
            tasks,
            ended,
        }
    }

    pub async fn end(mut self) {
        self.ended.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn watch_slices(
    client: Client,
    config: Arc<Config>,
    forwarder: ChangeForwarder<Slice>,
    ended: CancellationToken,
) {
    let names: Vec<&str> = config
        .services
        .iter()
        .map(|service| service.name.as_str())
        .collect();
    let selected =
        watcher::Config::default().labels(&format!("{SERVICE_NAME} in ({})", names.join(",")));
    let api: Api<DeserializeGuard<EndpointSlice>> = Api::all(client);
    let prune = move |slice: EndpointSlice| slice.pruned(&config.services);
    follow(api, selected, prune, forwarder, ended).await;
}

async fn watch_pods(
    client: Client,
    config: Arc<Config>,
    mut forwarder: ChangeForwarder<DeletionCandidate>,
    ended: CancellationToken,
) {
    let selector = config.common_selector();
    if selector.is_nothing() {
        // No pod is of interest, and that is known without asking.
        forwarder
            .take(Change::Listed {
                objects: HashMap::new(),
                unreadable: HashSet::new(),
            })
            .await;
        return ended.cancelled().await;
    }
    let selected = watcher::Config::default().labels(&selector.to_string());
    let api: Api<DeserializeGuard<Pod>> = Api::all(client);
    let prune = move |pod: Pod| judge(&pod.metadata, &pod.spec, &pod.status, &config.services);
    follow(api, selected, prune, forwarder, ended).await;
}

/// Forwards what a watch observes to the core, none left out, in order. When the core lags behind,
/// the watch waits for it.
struct ChangeForwarder<V> {
    /// Names the objects in logs and metrics.
    what: &'static str,
    changes: mpsc::Sender<Change<V>>,
    metrics: Metrics,
}

impl<V: Send> Follower<V> for ChangeForwarder<V> {
    fn what(&self) -> &'static str {
        self.what
    }

    async fn begin(&mut self) {}

    async fn take(&mut self, change: Change<V>) {
        if matches!(change, Change::Lost) {
            self.metrics.restart(self.what);
        }
        // Fails only when whoever acts on changes has ended.
        let _ = self.changes.send(change).await;
    }

    fn unreadable(&mut self, key: &Key, error: &str) {
        let Key { namespace, name } = key;
        self.metrics.unreadable(self.what);
        tracing::warn!(
            what = self.what,
            namespace,
            name,
            error,
            "object cannot be understood, what was known of it stays"
        );
    }
}
