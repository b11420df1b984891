//! Present views of all shoots, as their tasks and the manager have published them last.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use chrono::TimeDelta;
use parking_lot::Mutex;
use prober_core::config::Config;
use prober_core::moment::Moment;
use prober_core::verdict::Verdict;

use super::outage::Outage;
use super::view::{ProbeStatus, ShootView, ShownDependent};
use crate::clock::Clock;
use crate::owner::OwnerStatus;
use crate::seed::ClusterState;

/// Most outages that are kept once they have ended.
const KEPT_OUTAGES: usize = 20;

/// The view of each shoot. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub struct ShootStatuses {
    pub clock: Clock,
    pub(super) table: Arc<Mutex<StatusTable>>,
}

#[derive(Debug, Default)]
pub(super) struct StatusTable {
    pub shoots: BTreeMap<String, ShootView>,
    /// Those that have ended, the newest first.
    pub outages: VecDeque<Outage>,
}

/// Updates a shoot's view; what its task has published goes when it is dropped.
pub(crate) struct StatusHandle {
    statuses: ShootStatuses,
    namespace: String,
}

impl ShootStatuses {
    /// Empty.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            table: Arc::default(),
        }
    }

    /// Sets the state of a shoot by its Cluster; `None` if the Cluster is gone.
    pub(crate) fn set_cluster(&self, namespace: &str, cluster: Option<&ClusterState>) {
        let shoots = &mut self.table.lock().shoots;
        match cluster {
            Some(cluster) => {
                let view = shoots.entry(namespace.to_owned()).or_default();
                namespace.clone_into(&mut view.namespace);
                view.set_cluster(cluster);
            }
            None => drop(shoots.remove(namespace)),
        }
    }

    /// Reads or changes the owner record of a shoot that has a Cluster.
    pub(crate) fn owner<T: Default>(
        &self,
        namespace: &str,
        act: impl FnOnce(&mut Option<OwnerStatus>) -> T,
    ) -> T {
        let shoots = &mut self.table.lock().shoots;
        let view = shoots.get_mut(namespace);
        view.map(|view| act(&mut view.owner)).unwrap_or_default()
    }

    /// Shows a shoot as probed from now on, or without probes as treated by a decree.
    pub(super) fn register(
        &self,
        namespace: &str,
        config: &Config,
        first_probe: Moment,
        decree: Option<Verdict>,
    ) -> StatusHandle {
        let handle = StatusHandle {
            statuses: self.clone(),
            namespace: namespace.to_owned(),
        };
        handle.update(|view| {
            view.decree = decree;
            view.probe = decree.is_none().then(|| ProbeStatus::new(first_probe));
            view.dependents = config.dependents.iter().map(ShownDependent::new).collect();
        });
        handle
    }

    /// Returns the shoot whose probe is most overdue, if any is by more than `limit`.
    pub(crate) fn overdue(&self, limit: TimeDelta) -> Option<(String, TimeDelta)> {
        let (now, table) = (self.clock.now(), self.table.lock());
        let probed = table.shoots.values();
        let due = probed.filter_map(|view| Some((view.probe.as_ref()?.due, &view.namespace)));
        let (due, namespace) = due.min()?;
        let late = now - due;
        (late > limit).then(|| (namespace.clone(), late))
    }
}

impl StatusHandle {
    /// Updates the view. Returns the default if there is none any more.
    pub(super) fn update<T: Default>(&self, change: impl FnOnce(&mut ShootView) -> T) -> T {
        let shoots = &mut self.statuses.table.lock().shoots;
        let view = shoots.get_mut(&self.namespace);
        view.map(change).unwrap_or_default()
    }

    /// The same for what only a probed shoot has.
    pub(super) fn update_probe<T: Default>(&self, change: impl FnOnce(&mut ProbeStatus) -> T) -> T {
        self.update(|view| view.probe.as_mut().map(change).unwrap_or_default())
    }

    /// Keeps the record of an outage that has ended.
    pub(super) fn keep(&self, outage: Outage) {
        let outages = &mut self.statuses.table.lock().outages;
        outages.truncate(KEPT_OUTAGES - 1);
        outages.push_front(outage);
    }
}

impl Drop for StatusHandle {
    fn drop(&mut self) {
        self.update(ShootView::forget_probe);
    }
}
