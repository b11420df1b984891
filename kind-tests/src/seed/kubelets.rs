//! A stand-in for the kubelets of a seed: ready replicas follow wanted ones.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::kube_api::KubeApi;

/// An annotation on a resource: milliseconds after which its pods follow, or "never" for pods that never start.
pub const READY_AFTER: &str = "bed.example.org/ready-after";

/// How often it looks whether a change is due.
const TICK: Duration = Duration::from_millis(25);
/// Writes in flight: enough for a seed on which hundreds of Deployments change at once.
const IN_FLIGHT: usize = 16;
/// How long pods take to start or end, unless an annotation says otherwise.
const USUAL: Duration = Duration::from_millis(200);

#[derive(Default)]
pub(super) struct Kubelets {
    due: Mutex<HashMap<String, (Instant, i64)>>,
}

impl Kubelets {
    /// Looks at an object that was written.
    pub(super) fn see(&self, path: &str, object: &Value) {
        let wanted = object["spec"]["replicas"].as_i64().unwrap_or_default();
        let ready = object["status"]["readyReplicas"].as_i64().unwrap_or_default();
        let word = object["metadata"]["annotations"][READY_AFTER].as_str();
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted == ready || (word == Some("never") && wanted > ready) {
            due.remove(path);
            return;
        }
        let delay = word.and_then(|word| word.parse().ok()).map_or(USUAL, Duration::from_millis);
        match due.get(path) {
            Some((_, planned)) if *planned == wanted => {}
            _ => {
                due.insert(path.into(), (Instant::now() + delay, wanted));
            }
        }
    }

    fn take_due(&self) -> Vec<(String, i64)> {
        let now = Instant::now();
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.extract_if(|_, (at, _)| *at <= now).map(|(path, (_, wanted))| (path, wanted)).collect()
    }
}

pub(super) async fn run(kubelets: std::sync::Arc<Kubelets>, api: KubeApi) {
    loop {
        sleep(TICK).await;
        // As on a real seed, no kubelet waits for another.
        let write = async |(path, wanted): (String, i64)| {
            let status = json!({"status": {"replicas": wanted, "readyReplicas": wanted, "availableReplicas": wanted}});
            // Gone meanwhile, or written again: the watch tells.
            let _ = api.merge(&format!("{path}/status"), &status).await;
        };
        futures::stream::iter(kubelets.take_due()).for_each_concurrent(IN_FLIGHT, write).await;
    }
}
