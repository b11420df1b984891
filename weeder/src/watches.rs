//! The two watches, of EndpointSlices and of pods, each in a task of its own.

use std::sync::Arc;

use common::change::{Change, Listed};
use common::reflector::{ChangeHandler, reflect};
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use weeder_core::config::Config;
use weeder_core::readiness::Slice;
use weeder_core::verdict::{DeletionCandidate, Spared, judge};

use crate::metrics::{WeederMetrics, count};
use crate::pod::PrunedPod;
use crate::slice::{PrunedSlice, SERVICE_NAME};

/// Changes that may wait to be applied; more of them hold up the watch.
const CHANGES: usize = 256;
/// Objects in a page of a list, as for kubectl.
const PER_PAGE: u32 = 500;

/// Both watches, for as long as one config asks for the same Services and pods.
pub struct Watches {
    pub slices: mpsc::Receiver<Change<Slice>>,
    /// Deletion candidates.
    pub pods: mpsc::Receiver<Change<DeletionCandidate>>,
    /// One for each; both run until they are aborted.
    pub tasks: JoinSet<()>,
}

impl Watches {
    pub fn start(client: &Client, config: &Arc<Config>, metrics: &WeederMetrics) -> Self {
        let (slice_changes, slices) = ChangeForwarder::new("endpointslices", metrics);
        let (pod_changes, pods) = ChangeForwarder::new("pods", metrics);
        let mut tasks = JoinSet::new();
        tasks.spawn(watch_slices(
            client.clone(),
            Arc::clone(config),
            slice_changes,
        ));
        tasks.spawn(watch_pods(client.clone(), Arc::clone(config), pod_changes));
        Self {
            slices,
            pods,
            tasks,
        }
    }
}

async fn watch_slices(client: Client, config: Arc<Config>, changes: ChangeForwarder<Slice>) {
    let names: Vec<&str> = config.services.keys().map(|name| &**name).collect();
    let selector = format!("{SERVICE_NAME} in ({})", names.join(","));
    let selected = ListParams::default().labels(&selector).limit(PER_PAGE);
    let api: Api<PrunedSlice> = Api::all(client);
    let prune = move |slice: PrunedSlice| slice.pruned(&config.services);
    reflect(api, selected, prune, changes).await;
}

async fn watch_pods(
    client: Client,
    config: Arc<Config>,
    mut changes: ChangeForwarder<DeletionCandidate>,
) {
    let Some(requirements) = config.common_requirements() else {
        // No pod is of interest, and that is known without a request.
        changes.handle(Change::Listed(Listed::new())).await;
        return std::future::pending().await;
    };
    let selector: Vec<_> = requirements.iter().map(ToString::to_string).collect();
    let selected = ListParams::default()
        .labels(&selector.join(","))
        .limit(PER_PAGE);
    let api: Api<PrunedPod> = Api::all(client);
    let prune = move |pod: PrunedPod| {
        let judged = judge(&pod.metadata, &pod.spec, &pod.status, &config.services);
        let is_notable = |reason: &&Spared| **reason != Spared::DoesNotCrashLoop;
        if let Some(reason) = judged.as_ref().err().filter(is_notable) {
            let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
            let reason = reason.into_str();
            tracing::debug!(namespace, name, reason, "crash-looping pod is left alone");
        }
        judged.ok()
    };
    reflect(api, selected, prune, changes).await;
}

/// Forwards all changes that a watch observes to the controller, in order. When the controller lags
/// behind, the watch waits for it.
struct ChangeForwarder<V> {
    /// Names the objects in logs and metrics.
    resource: &'static str,
    changes: mpsc::Sender<Change<V>>,
    metrics: WeederMetrics,
}

impl<V> ChangeForwarder<V> {
    fn new(resource: &'static str, metrics: &WeederMetrics) -> (Self, mpsc::Receiver<Change<V>>) {
        let (changes, receiver) = mpsc::channel(CHANGES);
        let metrics = metrics.clone();
        let forwarder = Self {
            resource,
            changes,
            metrics,
        };
        (forwarder, receiver)
    }
}

impl<V: Send> ChangeHandler<V> for ChangeForwarder<V> {
    fn resource(&self) -> &'static str {
        self.resource
    }

    async fn handle(&mut self, change: Change<V>) {
        if matches!(change, Change::Lost) {
            count(&self.metrics.restarts, "resource", self.resource);
        }
        // Fails only when the controller has ended.
        let _ = self.changes.send(change).await;
    }

    fn unreadable(&mut self) {
        count(&self.metrics.unreadable, "resource", self.resource);
    }
}
