//! Forwards what a watch observes to the core: each object pruned, none left out, in order.

use std::collections::{HashMap, HashSet};

use common::follow::Follower;
use common::view::{Key, key_of};
use kube::Resource;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use tokio::sync::mpsc;

use crate::core::news::Change;
use crate::metrics::Metrics;

/// Prunes each object and forwards the change. When the receiver lags behind, the watch waits for it.
pub struct ChangeForwarder<V, P> {
    what: &'static str,
    prune: P,
    changes: mpsc::Sender<Change<V>>,
    metrics: Metrics,
    objects: HashMap<Key, V>,
    unreadable: HashSet<Key>,
    /// A place in the queue, so that the loss of the watch can be forwarded at once, however full it is.
    loss: Option<mpsc::OwnedPermit<Change<V>>>,
}

impl<V, P> ChangeForwarder<V, P> {
    /// Sends to `changes` what `prune` leaves; `what` names the objects in logs.
    pub fn new(what: &'static str, prune: P, changes: mpsc::Sender<Change<V>>, metrics: Metrics) -> Self {
        Self { what, prune, changes, metrics, objects: HashMap::new(), unreadable: HashSet::new(), loss: None }
    }
}

impl<V, P> ChangeForwarder<V, P> {
    /// What is left of an object, or nothing; an error says that it cannot be understood.
    fn pruned<K: Resource>(&mut self, object: DeserializeGuard<K>) -> (Key, Result<Option<V>, ()>)
    where
        P: FnMut(K) -> Option<V>,
    {
        let key = key_of(&object);
        let pruned = object.0.map(&mut self.prune).map_err(|error| {
            let Key { namespace, name } = &key;
            self.metrics.unreadable(self.what);
            tracing::warn!(what = self.what, namespace, name, error = %error, "object cannot be understood, what was known of it stays");
        });
        (key, pruned)
    }
}

impl<K, V, P> Follower<K> for ChangeForwarder<V, P>
where
    K: Resource + Send,
    V: Send,
    P: FnMut(K) -> Option<V> + Send,
{
    async fn take(&mut self, event: Event<DeserializeGuard<K>>) -> bool {
        let change = match event {
            Event::Init => {
                self.objects.clear();
                self.unreadable.clear();
                if self.loss.is_none() {
                    // Fails only when nobody receives any more.
                    self.loss = self.changes.clone().reserve_owned().await.ok();
                }
                return false;
            }
            Event::InitApply(object) => {
                match self.pruned(object) {
                    (key, Ok(Some(value))) => drop(self.objects.insert(key, value)),
                    (_, Ok(None)) => {}
                    (key, Err(())) => drop(self.unreadable.insert(key)),
                }
                return false;
            }
            Event::InitDone => {
                let objects = std::mem::take(&mut self.objects);
                Change::Listed { objects, unreadable: std::mem::take(&mut self.unreadable) }
            }
            Event::Apply(object) => match self.pruned(object) {
                (key, Ok(Some(value))) => Change::Applied(key, value),
                (key, Ok(None)) => Change::Gone(key),
                (_, Err(())) => return false,
            },
            Event::Delete(object) => Change::Gone(key_of(&object)),
        };
        let listed = matches!(change, Change::Listed { .. });
        // Fails only when whoever acts on changes has ended.
        let _ = self.changes.send(change).await;
        listed
    }

    fn broke(&mut self, error: &str) {
        self.metrics.restart(self.what);
        tracing::warn!(what = self.what, error, "watch broke, it starts anew");
        if let Some(loss) = self.loss.take() {
            drop(loss.send(Change::Lost));
        }
    }
}

#[cfg(test)]
mod tests;
