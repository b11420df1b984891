//! Present views of all shoots, as their tasks and the manager have published them last.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use chrono::TimeDelta;
use parking_lot::Mutex;

use super::outage::Outage;
use super::view::ShootView;
use crate::clock::Clock;
use crate::owner::OwnerStatus;
use crate::seed::ClusterState;

/// Most outages that are kept once they have ended.
const KEPT_OUTAGES: usize = 20;

/// The view of each shoot. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub struct ShootStatuses {
    pub clock: Clock,
    /// Locked before any view.
    pub(super) shoots: Arc<Mutex<BTreeMap<String, SharedView>>>,
    /// Those that have ended, the newest first.
    pub(super) outages: Arc<Mutex<VecDeque<Outage>>>,
}

/// The view of one shoot, shared with its task.
pub(super) type SharedView = Arc<Mutex<ShootView>>;

impl ShootStatuses {
    /// Empty.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            shoots: Arc::default(),
            outages: Arc::default(),
        }
    }

    /// Sets the state of a shoot by its Cluster; `None` if the Cluster is gone.
    pub(crate) fn set_cluster(&self, namespace: &str, cluster: Option<&ClusterState>) {
        let mut shoots = self.shoots.lock();
        let Some(cluster) = cluster else {
            shoots.remove(namespace);
            return;
        };
        let mut view = shoots.entry(namespace.to_owned()).or_default().lock();
        namespace.clone_into(&mut view.namespace);
        (view.state, view.unreadable) = match (&cluster.lifecycle, &cluster.shoot) {
            (Some(lifecycle), _) => (lifecycle.as_str().into(), None),
            (None, Some(Err(error))) => ("unreadable".into(), Some(error.clone())),
            (None, _) => ("no_shoot".into(), None),
        };
    }

    /// Returns the view of a shoot; one that nobody sees if its Cluster is gone.
    pub(super) fn view(&self, namespace: &str) -> SharedView {
        let shoots = self.shoots.lock();
        shoots.get(namespace).cloned().unwrap_or_default()
    }

    /// Reads or changes the owner record of a shoot that has a Cluster.
    pub(crate) fn owner<T>(
        &self,
        namespace: &str,
        act: impl FnOnce(&mut Option<OwnerStatus>) -> T,
    ) -> T {
        act(&mut self.view(namespace).lock().owner)
    }

    /// Returns the shoot whose probe is most overdue, if any is by more than `limit`.
    pub(crate) fn overdue(&self, limit: TimeDelta) -> Option<(String, TimeDelta)> {
        let (now, shoots) = (self.clock.now(), self.shoots.lock());
        let due = shoots
            .iter()
            .filter_map(|(namespace, view)| Some((view.lock().probe.as_ref()?.due, namespace)));
        let (due, namespace) = due.min()?;
        let late = now - due;
        (late > limit).then(|| (namespace.clone(), late))
    }

    /// Keeps the record of an outage that has ended.
    pub(super) fn keep(&self, outage: Outage) {
        let mut outages = self.outages.lock();
        outages.truncate(KEPT_OUTAGES - 1);
        outages.push_front(outage);
    }
}
