//! Forwards what a watch observes to the core, none left out, in order.

use common::change::{Change, Key};
use common::follow::Follower;
use tokio::sync::mpsc;

use crate::metrics::Metrics;

/// Forwards each change. When the receiver lags behind, the watch waits for it.
pub struct ChangeForwarder<V> {
    what: &'static str,
    changes: mpsc::Sender<Change<V>>,
    metrics: Metrics,
    /// A place in the queue, so that the loss of the watch can be forwarded at once, however full it is.
    loss: Option<mpsc::OwnedPermit<Change<V>>>,
}

impl<V> ChangeForwarder<V> {
    /// `what` names the objects in logs.
    pub fn new(what: &'static str, changes: mpsc::Sender<Change<V>>, metrics: Metrics) -> Self {
        Self { what, changes, metrics, loss: None }
    }
}

impl<V: Send> Follower<V> for ChangeForwarder<V> {
    async fn begin(&mut self) {
        if self.loss.is_none() {
            // Fails only when nobody receives any more.
            self.loss = self.changes.clone().reserve_owned().await.ok();
        }
    }

    async fn take(&mut self, change: Change<V>) {
        if let Change::Lost(error) = &change {
            self.metrics.restart(self.what);
            tracing::warn!(what = self.what, error = error.as_str(), "watch broke, it is restarted");
            if let Some(loss) = self.loss.take() {
                drop(loss.send(change));
            }
            return;
        }
        // Fails only when whoever acts on changes has ended.
        let _ = self.changes.send(change).await;
    }

    fn unreadable(&mut self, key: &Key, error: &str) {
        let Key { namespace, name } = key;
        self.metrics.unreadable(self.what);
        tracing::warn!(what = self.what, namespace, name, error, "object cannot be understood, what was known of it stays");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn applied() -> Change<()> {
        Change::Applied(Key { namespace: "n".to_owned(), name: "a".to_owned() }, ())
    }

    async fn lists(forwarder: &mut ChangeForwarder<()>) {
        forwarder.begin().await;
        forwarder.take(Change::Listed { objects: HashMap::new(), unreadable: HashSet::new() }).await;
    }

    #[tokio::test]
    async fn a_loss_is_forwarded_at_once_and_in_order_however_many_changes_wait() {
        let (sender, mut changes) = mpsc::channel(8);
        let mut forwarder = ChangeForwarder::new("pods", sender, Metrics::default());
        lists(&mut forwarder).await;
        assert!(matches!(changes.try_recv(), Ok(Change::Listed { .. })));
        let waiting = changes.max_capacity() - 1;
        for _ in 0..waiting {
            forwarder.take(applied()).await;
        }
        forwarder.take(Change::Lost("cut".to_owned())).await;
        for _ in 0..waiting {
            assert_eq!(changes.try_recv(), Ok(applied()));
        }
        assert_eq!(changes.try_recv(), Ok(Change::Lost("cut".to_owned())));
        lists(&mut forwarder).await;
        assert!(matches!(changes.try_recv(), Ok(Change::Listed { .. })));
        forwarder.take(Change::Lost("cut again".to_owned())).await;
        assert_eq!(changes.try_recv(), Ok(Change::Lost("cut again".to_owned())));
    }
}
