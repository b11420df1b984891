//! Reads replicas by the scale subresource: whenever an object has changed, beside the watch, so
//! that none waits for another.

use std::sync::Arc;
use std::time::Duration;

use common::backoff::Backoff;
use common::view::{Key, key_of};
use kube::Client;
use prober_core::replicas::Observed;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use super::{ScalableKind, ScalableObject};
use crate::seed::within;

/// The limit of a try, and the waits after the first ones.
const TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// One whose object says nothing of replicas fails for good, until the object changes, in every
/// shoot that has it.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Limit of scales of a kind read at once: a list may bring hundreds of objects.
const AT_ONCE: usize = 16;

/// Reads the scales of one kind.
pub(crate) struct ScaleReader {
    client: Client,
    kind: ScalableKind,
    changes: mpsc::Sender<Key>,
    permits: Semaphore,
}

/// An object whose scale is read until that succeeds. Dropped when the object changes or goes,
/// which ends the reading.
pub(crate) struct ScaleReading {
    latest: watch::Receiver<Latest>,
    _task: AbortOnDropHandle<()>,
}

struct Latest {
    observed: Option<Arc<Observed>>,
    tried: bool,
}

impl ScaleReading {
    /// The object as observed; `None` if its scale could not be read yet.
    pub(crate) fn observed(&self) -> Option<Arc<Observed>> {
        self.latest.borrow().observed.clone()
    }

    pub(crate) async fn tried(&self) {
        // Fails only when nobody reads it any more.
        let _ = self.latest.clone().wait_for(|latest| latest.tried).await;
    }
}

impl ScaleReader {
    /// Keys of read objects go to `changes`.
    pub(crate) fn new(client: Client, kind: ScalableKind, changes: mpsc::Sender<Key>) -> Arc<Self> {
        Arc::new(Self {
            client,
            kind,
            changes,
            permits: Semaphore::new(AT_ONCE),
        })
    }

    /// Begins to read the scale of an object that was as `before`; that holds until the first
    /// answer.
    pub(crate) fn begin(
        self: &Arc<Self>,
        object: ScalableObject,
        before: Option<Arc<Observed>>,
    ) -> ScaleReading {
        let is_same = |before: &Arc<Observed>| object.metadata.uid.as_ref() == Some(&before.uid);
        let (sender, latest) = watch::channel(Latest {
            observed: before.filter(is_same),
            tried: false,
        });
        let task = tokio::spawn(Arc::clone(self).read(object, sender));
        ScaleReading {
            latest,
            _task: AbortOnDropHandle::new(task),
        }
    }

    async fn read(self: Arc<Self>, object: ScalableObject, latest: watch::Sender<Latest>) {
        let key = key_of(&object);
        let mut backoff = Backoff::new(FIRST_WAIT, MAX_WAIT);
        loop {
            let answer = self.replicas(&key).await;
            let first = !latest.borrow().tried;
            if first && let Err(error) = &answer {
                let Key { namespace, name } = &key;
                tracing::warn!(
                    namespace,
                    name,
                    error,
                    "scale cannot be read, the resource is unknown until it can"
                );
            }
            let observed = answer
                .ok()
                .map(|replicas| Arc::new(self.kind.observe(&object, Some(replicas))));
            let is_known = observed.is_some();
            if first || is_known {
                latest.send_replace(Latest {
                    observed,
                    tried: true,
                });
                // Fails only when whoever acts on changes has ended.
                let _ = self.changes.send(key.clone()).await;
            }
            if is_known {
                return;
            }
            tokio::time::sleep(backoff.wait()).await;
        }
    }

    async fn replicas(&self, Key { namespace, name }: &Key) -> Result<i32, String> {
        let _permit = self
            .permits
            .acquire()
            .await
            .map_err(|closed| closed.to_string())?;
        let api = self.kind.api(&self.client, namespace);
        let scale = within(TIMEOUT, api.get_scale(name)).await?;
        Ok(scale.spec.and_then(|spec| spec.replicas).unwrap_or(0))
    }
}
