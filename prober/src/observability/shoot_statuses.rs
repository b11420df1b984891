//! How all shoots are at present, as their tasks last reported. Read by metrics, the status page
//! and health checks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use chrono::TimeDelta;
use parking_lot::Mutex;
use prober_core::config::ResourceRef;
use prober_core::judgement::Finding;
use prober_core::lifecycle::{Lifecycle, StopReason, WaitReason};
use prober_core::moment::Moment;
use prober_core::options::ResolvedOptions;
use prober_core::outage::Outage;
use prober_core::plan::Direction;
use prober_core::shoot::Intended;
use prober_core::verdict::Verdict;
use serde::{Serialize, Serializer};
use strum::IntoStaticStr;

use crate::clock::Clock;
use crate::owner_records::OwnerRecords;
use crate::owner_records::record::Ownership;
use crate::seed::ClusterState;

/// Outages that are kept once they have ended: the last ones of a shoot, and one of each shoot of a
/// large seed.
const PER_SHOOT: usize = 5;
const IN_ALL: usize = 500;

/// The status of each shoot. Cheap to clone; all clones share it.
#[derive(Clone, Debug)]
pub struct ShootStatuses {
    pub clock: Clock,
    /// Whether metrics distinguish shoots.
    pub per_shoot: bool,
    pub(super) table: Arc<Mutex<StatusTable>>,
    pub owners: OwnerRecords,
}

#[derive(Debug, Default)]
pub(super) struct StatusTable {
    pub states: HashMap<String, ShootState>,
    pub probed: HashMap<String, ShootStatus>,
    /// The newest first.
    outages: VecDeque<Outage>,
}

/// What the Cluster of a shoot says.
#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ShootState {
    Probed,
    #[strum(transparent)]
    Stopped(StopReason),
    #[strum(transparent)]
    Waiting(WaitReason),
    NoShoot,
    /// Why it cannot be understood.
    Unreadable(String),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ShootStatus {
    /// When the next probe is due; while one is under way, when that was.
    pub due: Moment,
    /// When the last probe was complete, or the first probe was due.
    pub complete: Moment,
    pub paused: bool,
    /// What the owner record says; none while none is checked.
    pub owner: Option<Ownership>,
    /// What holds for it, and from where; none while that is not known.
    pub options: Option<ResolvedOptions>,
    /// What carries the meltdown marker, and since when this process has seen it.
    pub held_down: BTreeMap<ResourceRef, Moment>,
    /// What the last complete probe found; none before the first.
    pub finding: Option<Arc<Finding>>,
    /// Why the last probe was not complete; none when it was.
    pub failure: Option<Failure>,
    pub scaling: Option<Direction>,
    pub outage: Option<Box<Outage>>,
    pub intended: Vec<Intended>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub stage: &'static str,
    pub category: &'static str,
    pub message: String,
    pub failed_probes: u32,
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

impl Serialize for ShootState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.into())
    }
}

impl ShootStatuses {
    /// Empty. With `per_shoot` there are metrics that distinguish shoots, so that their number
    /// grows with the shoots'.
    pub(crate) fn new(clock: Clock, per_shoot: bool) -> Self {
        Self {
            clock,
            per_shoot,
            table: Arc::default(),
            owners: OwnerRecords::default(),
        }
    }

    /// Notes what a Cluster says of its shoot; none when the Cluster is gone.
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

    /// The shoot whose probe is most overdue, if any is by more than `limit`. One that has stood
    /// down is not probed.
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

    /// All shoots of the seed; no status while one is not probed.
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

    /// The status of one shoot; none while it is not probed.
    pub(crate) fn probed(&self, namespace: &str) -> Option<ShootStatus> {
        self.table.lock().probed.get(namespace).cloned()
    }
}

impl StatusHandle {
    /// The default where there is no status any more.
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
    /// What the last probe concluded; none if it was not complete.
    pub(crate) fn verdict(&self) -> Option<Verdict> {
        let finding = self.finding.as_ref().filter(|_| self.failure.is_none())?;
        Some(finding.verdict)
    }

    /// Whether it is left alone, because it belongs to another seed or may do so.
    pub(crate) fn has_stood_down(&self) -> bool {
        self.owner.is_some_and(Ownership::is_lost)
    }

    pub(super) fn leases(&self) -> [(&'static str, usize); 4] {
        let finding = self.finding.as_deref();
        let (tally, skewed) = finding
            .map(|finding| (finding.tally, finding.skewed))
            .unwrap_or_default();
        [
            ("candidate", tally.candidates),
            ("expired", tally.expired),
            ("undecided", tally.undecided),
            ("skewed", skewed),
        ]
    }

    /// Notes what carries the marker now; what did before keeps its time.
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
