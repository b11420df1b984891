//! The kubelets of a seed, which write through its API.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::kubelets::{Pods, ready};
use futures::StreamExt;
use tokio::time::{Instant, sleep};

use crate::kube_api::KubeApi;

/// How often it looks whether a change is due.
const TICK: Duration = Duration::from_millis(25);
/// Writes in flight: enough for a seed on which hundreds of Deployments change at once.
const IN_FLIGHT: usize = 16;
/// How long pods take to start or end, unless an annotation says otherwise.
const USUAL: Duration = Duration::from_millis(200);

/// The pods of the resources at these paths.
pub(super) struct Kubelets(Mutex<Pods<String>>);

impl Default for Kubelets {
    fn default() -> Self {
        Self(Mutex::new(Pods::new(USUAL)))
    }
}

impl Kubelets {
    pub(super) fn pods(&self) -> MutexGuard<'_, Pods<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) async fn run(kubelets: std::sync::Arc<Kubelets>, api: KubeApi) {
    loop {
        sleep(TICK).await;
        // As on a real seed, no kubelet waits for another.
        let write = async |(path, replicas): (String, i64)| {
            // Gone meanwhile, or written again: the watch tells.
            let _ = api.merge(&format!("{path}/status"), &ready(replicas)).await;
        };
        let due = kubelets.pods().take_due(Instant::now());
        futures::stream::iter(due).for_each_concurrent(IN_FLIGHT, write).await;
    }
}
