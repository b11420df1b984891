//! Stand-ins for the kubelets of a seed: ready replicas follow wanted ones.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::objects::metadata;
use api_server::Store;

/// An annotation on a resource: milliseconds after which its pods follow.
pub const READY_AFTER: &str = "bed.example.org/ready-after";

/// Which pods are to start or end, and when that is done.
#[derive(Debug)]
pub struct Pods<K> {
    usual: Duration,
    due: BTreeMap<K, (Instant, i64)>,
}

impl<K: Clone + Ord> Pods<K> {
    /// Pods that take `usual` to start or end, unless an annotation says otherwise.
    pub fn new(usual: Duration) -> Self {
        Self {
            usual,
            due: BTreeMap::new(),
        }
    }

    /// Observes an object as it is now.
    pub fn observe(&mut self, key: &K, object: &Value, now: Instant) {
        let count = |part: &str, key: &str| object[part][key].as_i64().unwrap_or_default();
        let wanted = count("spec", "replicas");
        let planned = self.due.get(key).map(|(_, planned)| *planned);
        if wanted == count("status", "readyReplicas") {
            self.due.remove(key);
        } else if planned != Some(wanted) {
            let takes = object["metadata"]["annotations"][READY_AFTER].as_str();
            let takes = takes.and_then(|word| word.parse().ok());
            let takes = takes.map_or(self.usual, Duration::from_millis);
            self.due.insert(key.clone(), (now + takes, wanted));
        }
    }

    /// What is done by now, each with its number of replicas.
    pub fn take_due(&mut self, now: Instant) -> Vec<(K, i64)> {
        let due = self.due.extract_if(.., |_, (at, _)| *at <= now);
        due.map(|(key, (_, wanted))| (key, wanted)).collect()
    }

    fn next(&self) -> Option<Instant> {
        self.due.values().map(|(at, _)| *at).min()
    }
}

/// A merge patch for a resource whose pods are all ready.
pub fn ready(replicas: i64) -> Value {
    json!({"status": {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas}})
}

/// Kubelets of a seed in memory. Dropping it ends them.
#[derive(Debug)]
pub struct Kubelets {
    _tasks: JoinSet<()>,
}

impl Kubelets {
    /// Lets the pods of these resources follow after this time, on the current runtime.
    pub fn start(store: &Store, resources: &'static [&str], usual: Duration) -> Self {
        Self {
            _tasks: JoinSet::from_iter([follow(store.clone(), resources, usual)]),
        }
    }
}

async fn follow(store: Store, resources: &'static [&str], usual: Duration) {
    let mut pods = Pods::new(usual);
    loop {
        let (seen, now) = (store.revision(), Instant::now());
        for resource in resources {
            for object in store.list(resource, None) {
                let [namespace, name] =
                    ["namespace", "name"].map(|field| metadata(&object, field).to_owned());
                pods.observe(&(*resource, namespace, name), &object, now);
            }
        }
        for ((resource, namespace, name), replicas) in pods.take_due(now) {
            // One that was deleted in the meantime needs none.
            store
                .patch(resource, &namespace, &name, &ready(replicas))
                .ok();
        }
        let next = pods.next();
        tokio::select! {
            biased;
            () = store.changed(seen) => sleep(usual / 4).await,
            () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
        }
    }
}
