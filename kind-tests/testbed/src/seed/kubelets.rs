//! The kubelets of a seed, which write through its API.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::kube_api::KubeApi;
use crate::kubelets::{Pods, ready};

/// How often it checks whether a change is due.
const TICK: Duration = Duration::from_millis(25);
/// Writes in flight: enough for a seed on which hundreds of Deployments change at once.
const IN_FLIGHT: usize = 16;
/// How long pods take to start or end, unless an annotation says otherwise.
pub(super) const USUAL: Duration = Duration::from_millis(200);

/// Runs the pods of the resources at these paths.
pub(super) async fn run(pods: Arc<Mutex<Pods<String>>>, api: KubeApi) {
    loop {
        sleep(TICK).await;
        // As on a real seed, no kubelet waits for another.
        let write = async |(path, replicas): (String, i64)| {
            // Gone meanwhile, or written again: the watch tells.
            let _ = api.merge(&format!("{path}/status"), &ready(replicas)).await;
        };
        let due = pods.lock().take_due(Instant::now());
        futures::stream::iter(due)
            .for_each_concurrent(IN_FLIGHT, write)
            .await;
    }
}
