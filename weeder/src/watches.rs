//! The two watches, of EndpointSlices and of pods, each in a task of its own.

use common::change::Change;
use common::reflector::{ChangeHandler, reflect};
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use weeder_core::config::{Config, Services};
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
    pub fn start(client: &Client, config: &Config, metrics: &WeederMetrics) -> Self {
        let mut tasks = JoinSet::new();
        let names: Vec<_> = config.services.keys().map(|name| &**name).collect();
        let of_services = selected(&format!("{SERVICE_NAME} in ({})", names.join(",")));
        let (changes, slices) = ChangeForwarder::new("endpointslices", metrics);
        let services = config.services.clone();
        let prune = move |slice: PrunedSlice| slice.pruned(&services);
        tasks.spawn(reflect(
            Api::all(client.clone()),
            of_services,
            prune,
            changes,
        ));

        let common = config.common_requirements().unwrap_or_default();
        let common: Vec<_> = common.iter().map(ToString::to_string).collect();
        let in_common = selected(&common.join(","));
        let (changes, pods) = ChangeForwarder::new("pods", metrics);
        let services = config.services.clone();
        let prune = move |pod| candidate(pod, &services);
        tasks.spawn(reflect(Api::all(client.clone()), in_common, prune, changes));
        Self {
            slices,
            pods,
            tasks,
        }
    }
}

fn selected(labels: &str) -> ListParams {
    ListParams::default().labels(labels).limit(PER_PAGE)
}

/// Keeps what is used of a pod; `None` if it must be left alone.
fn candidate(pod: PrunedPod, services: &Services) -> Option<DeletionCandidate> {
    let judged = judge(&pod.metadata, &pod.spec, &pod.status, services);
    let is_notable = |reason: &&Spared| **reason != Spared::DoesNotCrashLoop;
    if let Some(reason) = judged.as_ref().err().filter(is_notable) {
        let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
        let reason = reason.into_str();
        tracing::debug!(namespace, name, reason, "crash-looping pod is left alone");
    }
    judged.ok()
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
