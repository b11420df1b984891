//! A number that others wait for to change.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Wakes those who wait in the order in which they began to, unlike a watch channel: on one thread the
/// same happens each time.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    count: AtomicU64,
    changed: Notify,
}

impl Counter {
    pub fn get(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    pub fn set(&self, count: u64) {
        self.count.store(count, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    pub fn increase(&self) {
        self.set(self.get() + 1);
    }

    /// Waits until it is no longer so.
    pub async fn changed(&self, seen: u64) {
        loop {
            let changed = self.changed.notified();
            if self.get() != seen {
                return;
            }
            changed.await;
        }
    }
}
