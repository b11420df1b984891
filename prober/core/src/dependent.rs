//! One dependent: its state as known from the seed's view, a read, or the response to one of our
//! writes, and its progress in the running scaling.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use chrono::TimeDelta;

use super::moment::Moment;
use super::refusal::Refusal;
use super::replicas::{DependentState, Observed, PlannedWrite};
use super::retry::ScalingBackoff;
use super::step::{Stage, Step};
use crate::config::{Dependent, DependentId, ResourceRef};
use crate::shoot::Waits;

/// Maximum lag of a view behind the newest observed state: a silent watch is closed after four
/// minutes, and its state counts for one more. A state that is still older after that comes from a
/// seed restored from a backup.
const LONGEST_LAG: TimeDelta = TimeDelta::minutes(5);

/// A state, and when it was first observed.
type FirstSeen = (Arc<Observed>, Moment);

#[derive(Clone, Debug)]
pub struct DependentRecord {
    pub resource: ResourceRef,
    state: DependentState,
    /// Newest observed state. A view may lag behind the response to a write.
    newest: Option<FirstSeen>,
    /// Last known state before the API server returned 404, and when.
    gone: Option<FirstSeen>,
    /// True if the marker was observed since the resource was last up without it.
    was_held_down: bool,
    /// Time at which this state was first observed.
    since: Option<Moment>,
    /// Requirement that the next write waits for.
    pub(crate) waits: Option<Waits>,
    /// Set while scaling it fails.
    backoff: Option<ScalingBackoff>,
    /// Time of this replica's last write as a standby, until its own verdict changes.
    pub(crate) written_as_standby: Option<Moment>,
    pub(crate) step: Step,
}

impl DependentRecord {
    pub(crate) fn new(dependent: &Dependent) -> Self {
        Self {
            resource: dependent.resource.clone(),
            state: DependentState::Unknown,
            newest: None,
            gone: None,
            was_held_down: false,
            since: None,
            waits: None,
            backoff: None,
            written_as_standby: None,
            step: Step::default(),
        }
    }

    /// Applies the state in the view. Returns true if a marker newly appears.
    pub(crate) fn observe(&mut self, seen: DependentState, now: Moment) -> bool {
        let before = self.backoff.is_some().then(|| self.state.clone());
        let marked = self.apply(seen, now);
        // The change may have removed the cause of the failure.
        if let Some(backoff) = &mut self.backoff
            && before.is_some_and(|before| !before.is_same(&self.state))
        {
            backoff.again_at = now;
        }
        marked
    }

    fn apply(&mut self, seen: DependentState, now: Moment) -> bool {
        let DependentState::Present(observed) = seen else {
            self.state = seen;
            return false;
        };
        let is_recent = |at: Moment| now < at + LONGEST_LAG;
        if let Some((gone, at)) = &self.gone
            && is_recent(*at)
            && gone.is_no_older_than(&observed)
        {
            self.state = DependentState::Absent;
            return false;
        }
        if let Some((newest, at)) = &self.newest
            && is_recent(*at)
            && observed.is_older_than(newest)
        {
            self.state = DependentState::Present(Arc::clone(newest));
            return false;
        }
        self.adopt(observed, now)
    }

    /// Applies the result of a read, which no view is newer than. Returns true if a marker newly
    /// appears.
    pub(crate) fn read(&mut self, read: DependentState, now: Moment) -> bool {
        if let DependentState::Present(observed) = &read {
            self.newest
                .take_if(|(newest, _)| observed.is_older_than(newest));
        }
        self.observe(read, now)
    }

    /// Records the state after one of our writes.
    pub(crate) fn wrote(&mut self, after: Arc<Observed>, now: Moment) {
        self.adopt(after, now);
    }

    /// Records a failure. Returns false for one within the backoff: protection tries more often.
    pub(crate) fn scaling_failed(&mut self, refusal: &Refusal, now: Moment) -> bool {
        let backoff = self.backoff.get_or_insert_default();
        let is_due = backoff.again_at <= now;
        if is_due {
            backoff.failed(refusal, now);
        }
        is_due
    }

    /// Begins anew when the verdict has turned.
    pub(crate) fn turn(&mut self) {
        (self.backoff, self.written_as_standby, self.step.said) = (None, None, None);
    }

    /// Records that the target state is reached; see [`Stage::Done`].
    pub(crate) fn done(&mut self, written: Option<Moment>) {
        (self.step.stage, self.backoff) = (Stage::Done(written), None);
    }

    /// End of the backoff, or `None` if there is none.
    pub(crate) fn tried_again_at(&self) -> Option<Moment> {
        Some(self.backoff.as_ref()?.again_at)
    }

    /// True if scaling has failed and not succeeded since.
    pub fn fails(&self) -> bool {
        self.backoff.is_some() || self.step.retry.has_failed()
    }

    /// Records that the last known state, `known`, no longer exists.
    pub(crate) fn is_gone(&mut self, known: Option<Arc<Observed>>, now: Moment) {
        self.gone = known.map(|known| (known, now));
        self.state = DependentState::Absent;
    }

    fn adopt(&mut self, observed: Arc<Observed>, now: Moment) -> bool {
        let before = self.newest.as_ref().map(|(before, _)| before);
        let marked =
            observed.marks.held_down && before.is_none_or(|before| !before.marks.held_down);
        let stays = before.is_some_and(|before| before.uid == observed.uid)
            && observed.replicas <= 0
            && self.was_held_down;
        self.was_held_down = observed.marks.held_down || stays;
        if before.is_none_or(|before| !before.is_same_state(&observed)) {
            self.since = Some(now);
        }
        let first_seen = match &self.newest {
            Some((before, at)) if before.resource_version == observed.resource_version => *at,
            _ => now,
        };
        self.newest = Some((Arc::clone(&observed), first_seen));
        self.state = DependentState::Present(observed);
        marked
    }

    /// Time at which the current state was first observed; `None` if none ever was.
    pub(crate) fn since(&self) -> Option<Moment> {
        self.since
    }

    pub fn waits(&self) -> Option<Waits> {
        self.waits
    }

    pub fn state(&self) -> &DependentState {
        &self.state
    }

    /// State of the resource, if it is known and exists.
    pub fn observed(&self) -> Option<&Arc<Observed>> {
        match &self.state {
            DependentState::Present(observed) => Some(observed),
            _ => None,
        }
    }

    fn is(&self, wanted: impl FnOnce(&Observed) -> bool) -> bool {
        self.observed().is_some_and(|observed| wanted(observed))
    }

    pub fn is_held_down(&self) -> bool {
        self.is(|observed| observed.marks.held_down)
    }

    /// True if it is at 0 since it was held down, and to be restored; also when the seed's view broke
    /// then. Where somebody removed its marker, `only_held_down` leaves it at 0.
    pub fn stays_held_down(&self, only_held_down: bool) -> bool {
        let is_marked = |observed: &Observed| observed.marks.held_down || !only_held_down;
        self.was_held_down
            && match &self.state {
                DependentState::Present(observed) => {
                    observed.replicas <= 0 && !observed.marks.ignored && is_marked(observed)
                }
                DependentState::Unknown => true,
                DependentState::Absent | DependentState::Unscalable(_) => false,
            }
    }

    /// Write that is under way, and when it was sent.
    pub fn writing(&self) -> Option<(&PlannedWrite, Moment)> {
        match &self.step.stage {
            Stage::Writing(change, sent) => Some((change, *sent)),
            _ => None,
        }
    }

    pub(crate) fn was_held_down(&self) -> bool {
        self.was_held_down
    }

    /// True if a restore must wait for nodes that renew: it is held down, exists, and is managed by
    /// the prober.
    pub(crate) fn wants_proof(&self) -> bool {
        self.was_held_down
            && match &self.state {
                DependentState::Present(observed) => !observed.marks.ignored,
                DependentState::Unknown => true,
                DependentState::Absent | DependentState::Unscalable(_) => false,
            }
    }

    pub(crate) fn has_replicas(&self) -> bool {
        self.is(|observed| observed.replicas > 0)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is(|observed| observed.replicas > 0 && observed.ready > 0)
    }

    /// True if a restore has finished: it is ready, and managed by the prober.
    pub(crate) fn is_restored(&self) -> bool {
        self.is_ready() && self.is(|observed| !observed.marks.ignored)
    }

    /// True if a later level of a scale-down must wait for it: pods are running that will be
    /// stopped.
    pub(crate) fn is_going_down(&self) -> bool {
        self.is(|observed| !observed.marks.ignored && (observed.replicas > 0 || observed.ready > 0))
    }
}

/// Dependents of one shoot, in config order.
pub(crate) type Dependents = Vec<DependentRecord>;

impl Index<DependentId> for Dependents {
    type Output = DependentRecord;

    fn index(&self, id: DependentId) -> &DependentRecord {
        &self[id.0]
    }
}

impl IndexMut<DependentId> for Dependents {
    fn index_mut(&mut self, id: DependentId) -> &mut DependentRecord {
        &mut self[id.0]
    }
}
