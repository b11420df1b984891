//! An object of the seed as it is known: the newest state that a view, a read or the answer to a
//! write has shown.

use std::sync::Arc;

use chrono::TimeDelta;

use super::moment::Moment;
use super::replicas::{DependentState, Observed};

/// Maximum lag of a view behind the newest observed state: a silent watch is closed after four
/// minutes, and its state counts for one more. A state that is still older after that comes from a
/// seed restored from a backup.
const LONGEST_LAG: TimeDelta = TimeDelta::minutes(5);

/// A state, and when it was first observed.
type FirstSeen = (Arc<Observed>, Moment);

#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectView {
    state: DependentState,
    /// Newest observed state. A view may lag behind the response to a write.
    newest: Option<FirstSeen>,
    /// Last known state before the API server returned 404, and when.
    gone: Option<FirstSeen>,
    /// True if the marker was observed since the object was last up without it.
    was_held_down: bool,
    /// Time at which this state was first observed.
    changed: Option<Moment>,
}

impl ObjectView {
    /// Applies the state in the view. Returns true if a marker newly appears.
    pub(crate) fn observe(&mut self, seen: DependentState, now: Moment) -> bool {
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

    /// Applies what the API server itself shows, which no view is newer than. Returns true if a
    /// marker newly appears.
    pub(crate) fn read(&mut self, read: DependentState, now: Moment) -> bool {
        match &read {
            DependentState::Present(observed) => {
                self.newest
                    .take_if(|(newest, _)| observed.is_older_than(newest));
            }
            DependentState::Absent => self.is_gone(self.observed().cloned(), now),
            DependentState::Unknown | DependentState::Unscalable(_) => {}
        }
        self.observe(read, now)
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
            self.changed = Some(now);
        }
        let first_seen = match &self.newest {
            Some((before, at)) if before.resource_version == observed.resource_version => *at,
            _ => now,
        };
        self.newest = Some((Arc::clone(&observed), first_seen));
        self.state = DependentState::Present(observed);
        marked
    }

    pub(crate) fn state(&self) -> &DependentState {
        &self.state
    }

    /// Time at which the current state was first observed; `None` if none ever was.
    pub(crate) fn changed(&self) -> Option<Moment> {
        self.changed
    }

    pub(crate) fn observed(&self) -> Option<&Arc<Observed>> {
        match &self.state {
            DependentState::Present(observed) => Some(observed),
            _ => None,
        }
    }

    fn is(&self, wanted: impl FnOnce(&Observed) -> bool) -> bool {
        self.observed().is_some_and(|observed| wanted(observed))
    }

    pub(crate) fn is_held_down(&self) -> bool {
        self.is(|observed| observed.marks.held_down)
    }

    pub(crate) fn was_held_down(&self) -> bool {
        self.was_held_down
    }

    /// True if a restore must wait for nodes that renew: it is held down, exists, and is managed by
    /// the prober.
    pub(crate) fn wants_proof(&self) -> bool {
        let is_managed = |observed: &Observed| !observed.marks.ignored;
        self.was_held_down && (self.state == DependentState::Unknown || self.is(is_managed))
    }

    /// True if it is at 0 since it was held down, and to be restored; also when the seed's view broke
    /// then. Where somebody removed its marker, `only_held_down` leaves it at 0.
    pub(crate) fn stays_held_down(&self, only_held_down: bool) -> bool {
        let is_marked = |observed: &Observed| observed.marks.held_down || !only_held_down;
        let stays = |observed: &Observed| {
            observed.replicas <= 0 && !observed.marks.ignored && is_marked(observed)
        };
        self.was_held_down && (self.state == DependentState::Unknown || self.is(stays))
    }

    /// True if a scale-down leaves its replicas alone: it is at 0, or not managed by the prober.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.is(|observed| observed.replicas <= 0 || observed.marks.ignored)
    }

    pub(crate) fn has_replicas(&self) -> bool {
        self.is(|observed| observed.replicas > 0)
    }

    /// True if it should be ready and is not: it has replicas, and is managed by the prober.
    pub(crate) fn is_starting(&self) -> bool {
        self.is(|observed| observed.replicas > 0 && observed.ready <= 0 && !observed.marks.ignored)
    }

    /// True if a later level of a scale-down must wait for it: pods are running that will be
    /// stopped.
    pub(crate) fn is_going_down(&self) -> bool {
        self.is(|observed| !observed.marks.ignored && (observed.replicas > 0 || observed.ready > 0))
    }
}
