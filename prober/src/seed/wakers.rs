//! Wakes the tasks of the shoots by what the seed's watches show of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use common::view::Key;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use super::GARDEN;

#[derive(Debug, Default)]
pub struct Wakers {
    tasks: Mutex<BTreeMap<String, Arc<Notify>>>,
}

pub struct Registration {
    wakers: Arc<Wakers>,
    namespace: String,
    notify: Arc<Notify>,
}

impl Wakers {
    pub fn register(self: &Arc<Self>, namespace: &str) -> Registration {
        let notify = Arc::new(Notify::new());
        self.tasks
            .lock()
            .insert(namespace.to_owned(), Arc::clone(&notify));
        Registration {
            wakers: Arc::clone(self),
            namespace: namespace.to_owned(),
            notify,
        }
    }

    pub fn count(&self) -> usize {
        self.tasks.lock().len()
    }

    pub(crate) fn wake_all(&self) {
        self.tasks
            .lock()
            .values()
            .for_each(|notify| notify.notify_one());
    }

    pub fn wake(&self, shoot: &str) {
        if let Some(notify) = self.tasks.lock().get(shoot) {
            notify.notify_one();
        }
    }

    /// Wakes the tasks by the objects that have changed: those in a shoot's namespace, and the
    /// namespaces themselves.
    pub(super) async fn forward(self: Arc<Self>, mut changes: mpsc::Receiver<Key>) {
        while let Some(Key { namespace, name }) = changes.recv().await {
            let shoot = if namespace.is_empty() {
                name
            } else {
                namespace
            };
            if shoot == GARDEN {
                self.wake_all()
            } else {
                self.wake(&shoot)
            }
        }
    }
}

impl Registration {
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.wakers.tasks.lock().remove(&self.namespace);
    }
}
