//! A value that tasks follow as it changes.

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// They wake in the order in which they began to wait, unlike those of a watch channel, so that what
/// happens on a paused clock can be repeated.
#[derive(Debug, Default)]
pub struct Followed<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T> Followed<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }

    /// The next change from now on, also before this is polled.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    pub(crate) async fn reaches(&self, wanted: impl Fn(&T) -> bool) {
        loop {
            let changed = self.changed();
            if wanted(&self.lock()) {
                return;
            }
            changed.await;
        }
    }
}
