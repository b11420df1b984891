//! Present state of all shoots, as their tasks last reported. Read by metrics, the status page and
//! health checks.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use prober_core::config::ResourceRef;
use prober_core::lifecycle::{Lifecycle, StopReason, WaitReason};
use prober_core::moment::Moment;
use prober_core::options::ResolvedOptions;
use prober_core::plan::Direction;
use prober_core::shoot::Waits;
use prober_core::verdict::Verdict;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::outage::{Outage, ShootHistory};
use super::outcome::ProbeOutcome;
use crate::clock::Clock;
use crate::owner::{Owners, Standing};
use crate::seed::ClusterState;

/// Most outages that are kept once they have ended: the last ones of a shoot, and one of each shoot
/// of a large seed.
const PER_SHOOT: usize = 5;
const IN_ALL: usize = 500;

/// The status of each shoot. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub struct ShootStatuses {
    pub clock: Clock,
    pub(super) table: Arc<Mutex<StatusTable>>,
    pub owners: Owners,
}

#[derive(Debug, Default)]
pub(super) struct StatusTable {
    pub states: BTreeMap<String, ShootState>,
    pub probed: BTreeMap<String, ShootStatus>,
    /// The newest first.
    outages: VecDeque<Outage>,
}

/// State of a shoot by its Cluster.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ShootState {
    Probed,
    #[strum(transparent)]
    Stopped(StopReason),
    #[strum(transparent)]
    Waiting(WaitReason),
    NoShoot,
    /// The Cluster cannot be understood, for this reason.
    Unreadable(String),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ShootStatus {
    /// Time of the next probe; of the one under way, if any.
    pub due: Moment,
    /// Time at which the last probe was complete, or the first one was due.
    pub complete: Moment,
    /// Standing by the owner record; `None` while nobody checks it.
    pub owner: Option<Standing>,
    /// Settings in effect, and their sources; `None` while they are not known.
    pub options: Option<ResolvedOptions>,
    /// Resources that carry the meltdown marker, each with the time at which this process first saw
    /// it.
    pub held_down: BTreeMap<ResourceRef, Moment>,
    /// Outcome of the last complete probe.
    pub outcome: Option<Arc<ProbeOutcome>>,
    /// Failure of the last probe, unless it was complete.
    pub failure: Option<Failure>,
    pub scaling: Option<Direction>,
    pub outage: Option<Box<Outage>>,
    pub history: ShootHistory,
    pub intended: Vec<(ResourceRef, i32)>,
    /// Writes that wait, and for what.
    pub waits: Vec<(ResourceRef, Waits)>,
    /// Causes by which dependents could not be scaled.
    pub not_scaled: BTreeMap<ResourceRef, String>,
    /// Dependents that are not optional and do not exist.
    pub missing: Vec<ResourceRef>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub stage: Cow<'static, str>,
    pub category: Cow<'static, str>,
    pub message: String,
    /// Probes that have failed in a row.
    pub failed_probes: u32,
    /// Time of the first of them.
    pub since: DateTime<Utc>,
}

/// Updates a shoot's status, and removes it when dropped.
pub(crate) struct StatusHandle {
    statuses: ShootStatuses,
    namespace: String,
}

impl From<&ClusterState> for ShootState {
    fn from(cluster: &ClusterState) -> Self {
        match (cluster.lifecycle, &cluster.shoot) {
            (Some(Lifecycle::Probe), _) => Self::Probed,
            (Some(Lifecycle::Stop(reason)), _) => Self::Stopped(reason),
            (Some(Lifecycle::Wait(reason)), _) => Self::Waiting(reason),
            (None, Some(Err(error))) => Self::Unreadable(error.clone()),
            (None, _) => Self::NoShoot,
        }
    }
}

impl ShootStatuses {
    /// Empty.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            table: Arc::default(),
            owners: Owners::default(),
        }
    }

    /// Sets the state of a shoot by its Cluster; `None` if the Cluster is gone.
    pub(crate) fn set_state(&self, namespace: &str, state: Option<ShootState>) {
        let states = &mut self.table.lock().states;
        match state {
            Some(state) => states.insert(namespace.to_owned(), state),
            None => states.remove(namespace),
        };
    }

    /// Adds a shoot that is probed, with the moment of its first probe; the handle removes it.
    pub(crate) fn register(&self, namespace: String, first_probe: Moment) -> StatusHandle {
        let status = ShootStatus {
            due: first_probe,
            complete: first_probe,
            ..ShootStatus::default()
        };
        self.table.lock().probed.insert(namespace.clone(), status);
        StatusHandle {
            statuses: self.clone(),
            namespace,
        }
    }

    /// Returns the shoot whose probe is most overdue, if any is by more than `limit`. One that has
    /// stood down is not probed.
    pub(crate) fn overdue(&self, limit: TimeDelta) -> Option<(String, TimeDelta)> {
        let (now, table) = (self.clock.now(), self.table.lock());
        let (namespace, status) = table
            .probed
            .iter()
            .filter(|(_, status)| !status.has_stood_down())
            .min_by_key(|(_, status)| status.due)?;
        let late = now - status.due;
        (late > limit).then(|| (namespace.clone(), late))
    }

    /// All shoots of the seed, with the status of those that are probed.
    pub(crate) fn shoots(&self) -> Vec<(String, ShootState, Option<ShootStatus>)> {
        let StatusTable { states, probed, .. } = &*self.table.lock();
        let shoot = |(namespace, state): (&String, &ShootState)| {
            (
                namespace.clone(),
                state.clone(),
                probed.get(namespace).cloned(),
            )
        };
        states.iter().map(shoot).collect()
    }

    /// Outages, the newest first: those that go on, and the last ones that have ended.
    pub(crate) fn outages(&self) -> Vec<Outage> {
        let StatusTable {
            probed, outages, ..
        } = &*self.table.lock();
        let open = probed
            .values()
            .filter_map(|status| status.outage.as_deref());
        let mut outages: Vec<_> = open.chain(outages).cloned().collect();
        outages.sort_by_key(|outage| Reverse(outage.began));
        outages
    }
}

impl StatusHandle {
    /// Updates the status. Returns the default if there is none any more.
    pub(crate) fn update<T: Default>(&self, change: impl FnOnce(&mut ShootStatus) -> T) -> T {
        let probed = &mut self.statuses.table.lock().probed;
        probed
            .get_mut(&self.namespace)
            .map(change)
            .unwrap_or_default()
    }

    /// Keeps the record of an outage that has ended.
    pub(crate) fn keep(&self, outage: Outage) {
        let outages = &mut self.statuses.table.lock().outages;
        let same = |kept: &Outage| kept.namespace == outage.namespace;
        if outages.iter().filter(|kept| same(kept)).count() >= PER_SHOOT
            && let Some(oldest) = outages.iter().rposition(same)
        {
            outages.remove(oldest);
        }
        outages.truncate(IN_ALL - 1);
        outages.push_front(outage);
    }
}

impl Drop for StatusHandle {
    fn drop(&mut self) {
        self.statuses.table.lock().probed.remove(&self.namespace);
    }
}

impl ShootStatus {
    /// Verdict of the last probe, if it was complete.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let outcome = self.outcome.as_ref().filter(|_| self.failure.is_none())?;
        Some(outcome.finding.verdict)
    }

    /// True if its operators want nothing written; a known pause stays in effect while it is unknown.
    pub(crate) fn is_paused(&self) -> bool {
        self.options.is_some_and(|options| options.pause.value)
    }

    /// True if what is at 0 without a marker stays so.
    pub(super) fn restores_only_held_down(&self) -> bool {
        let only = |options: ResolvedOptions| options.restore_only_held_down.value;
        self.options.is_some_and(only)
    }

    /// True if it belongs to another seed or may do so, and is not probed.
    pub(crate) fn has_stood_down(&self) -> bool {
        self.owner.is_some_and(Standing::is_lost)
    }

    pub(super) fn leases(&self) -> [(&'static str, usize); 4] {
        let (tally, skewed) = self
            .outcome
            .as_ref()
            .map(|outcome| (outcome.finding.tally, outcome.finding.skewed))
            .unwrap_or_default();
        [
            ("candidate", tally.candidates),
            ("expired", tally.expired),
            ("undecided", tally.undecided),
            ("skewed", skewed),
        ]
    }

    /// Sets what carries the marker now; what did before keeps its time.
    pub(crate) fn set_held_down<'a>(
        &mut self,
        marked: impl IntoIterator<Item = &'a ResourceRef>,
        now: Moment,
    ) {
        let before = std::mem::take(&mut self.held_down);
        let since = |resource| before.get(resource).copied().unwrap_or(now);
        self.held_down = marked
            .into_iter()
            .map(|resource| (resource.clone(), since(resource)))
            .collect();
    }
}

#[cfg(test)]
pub(crate) mod tests;
