//! What this process knows of one dependent, wherever from: the seed's view, a read, or the answer
//! to a write of ours; and whether it has stood in for the leader there.

use std::sync::Arc;

use chrono::TimeDelta;

use super::moment::Moment;
use super::replicas::{DependentState, Observed};

/// For so long a view may show what was before the newest state that was seen: a watch without a
/// byte is given up after four minutes, and what it showed counts for one more (D-27). Whatever is
/// older then is that of a seed that was restored from a backup.
const LONGEST_LAG: TimeDelta = TimeDelta::minutes(5);

#[derive(Clone, Debug, Default, Hash)]
pub struct Known {
    state: DependentState,
    /// The newest state that was seen: a view may lag behind the answer to a write.
    newest: Option<Arc<Observed>>,
    /// When that was seen first.
    newest_at: Option<Moment>,
    /// The last known state of a resource of which an answer said that it does not exist any more,
    /// and when.
    gone: Option<(Arc<Observed>, Moment)>,
    /// Whether the marker was seen on the resource since it was last up without.
    was_held_down: bool,
    /// When this state was first seen here, or none was known (D-52).
    since: Option<Moment>,
    /// Which scaling of ours brought this state about.
    by: Option<u64>,
    /// When this replica last wrote it without the lead, if its own verdict has not turned since
    /// (D-50).
    pub stood_in: Option<Moment>,
}

impl Known {
    /// Takes in what the view shows. Says whether a marker is seen that was not there before.
    pub fn observe(&mut self, seen: DependentState, now: Moment) -> bool {
        let newest = self
            .newest
            .clone()
            .filter(|_| self.newest_at.is_some_and(|at| now < at + LONGEST_LAG));
        let gone = self
            .gone
            .as_ref()
            .filter(|(_, at)| now < *at + LONGEST_LAG)
            .map(|(gone, _)| gone);
        self.state = match (seen, newest) {
            (DependentState::Present(observed), _)
                if gone.is_some_and(|gone| gone.is_no_older_than(&observed)) =>
            {
                DependentState::Absent
            }
            (DependentState::Present(observed), Some(newest))
                if observed.is_older_than(&newest) =>
            {
                DependentState::Present(newest)
            }
            (DependentState::Present(observed), _) => return self.adopt(observed, None, now),
            (seen, _) => seen,
        };
        false
    }

    /// Takes in what a read shows, which no view is newer than. Says the same.
    pub fn read(&mut self, read: DependentState, now: Moment) -> bool {
        self.newest = self.newest.take().filter(
            |newest| !matches!(&read, DependentState::Present(read) if read.is_older_than(newest)),
        );
        self.observe(read, now)
    }

    /// Takes in how it is after a write that the scaling `by` made.
    pub fn wrote(&mut self, after: Arc<Observed>, by: u64, now: Moment) {
        self.adopt(after, Some(by), now);
    }

    /// Takes in that what was last known of it does not exist any more.
    pub fn is_gone(&mut self, known: Option<Arc<Observed>>, now: Moment) {
        self.gone = known.map(|known| (known, now));
        self.state = DependentState::Absent;
    }

    fn adopt(&mut self, observed: Arc<Observed>, by: Option<u64>, now: Moment) -> bool {
        let before = self.newest.as_ref();
        let marked =
            observed.marks.held_down && before.is_none_or(|before| !before.marks.held_down);
        let stays = before.is_some_and(|before| before.uid == observed.uid)
            && observed.replicas <= 0
            && self.was_held_down;
        self.was_held_down = observed.marks.held_down || stays;
        if before.is_none_or(|before| !before.is_same_state(&observed)) {
            (self.since, self.by) = (Some(now), by);
        }
        if before.is_none_or(|before| before.resource_version != observed.resource_version) {
            self.newest_at = Some(now);
        }
        self.newest = Some(Arc::clone(&observed));
        self.state = DependentState::Present(observed);
        marked
    }

    /// Whether a probe that was sent at `judged_at` is newer than this state, or the state is of
    /// this very scaling's making.
    pub fn is_older_than_probe(&self, judged_at: Moment, scaling: Option<u64>) -> bool {
        self.since.is_none_or(|since| since < judged_at) || self.by.is_some() && self.by == scaling
    }

    /// When the state that it is in was first observed here, unless a scaling of ours brought it
    /// about.
    pub fn changed_by_others_at(&self) -> Option<Moment> {
        self.since.filter(|_| self.by.is_none())
    }

    pub fn state(&self) -> &DependentState {
        &self.state
    }

    /// How it is, if that is known and it exists.
    pub fn observed(&self) -> Option<&Arc<Observed>> {
        let DependentState::Present(observed) = &self.state else {
            return None;
        };
        Some(observed)
    }

    pub fn is_held_down(&self) -> bool {
        self.observed()
            .is_some_and(|observed| observed.marks.held_down)
    }

    /// The same, and as it was last known while the seed's view of it is broken.
    pub fn is_last_known_held_down(&self) -> bool {
        self.is_held_down() || self.state == DependentState::Unknown && self.was_held_down
    }

    pub fn was_held_down(&self) -> bool {
        self.was_held_down
    }

    /// Whether it is brought back only once nodes are seen to renew (D-59): it is held down, and
    /// there, and the prober's to bring back.
    pub fn wants_proof(&self) -> bool {
        match &self.state {
            DependentState::Present(observed) => self.was_held_down && !observed.marks.ignored,
            DependentState::Unknown => self.was_held_down,
            DependentState::Absent | DependentState::NoSuchKind => false,
        }
    }

    pub fn has_replicas(&self) -> bool {
        self.observed()
            .is_some_and(|observed| observed.replicas > 0)
    }

    pub fn is_ready(&self) -> bool {
        self.observed()
            .is_some_and(|observed| observed.replicas > 0 && observed.ready > 0)
    }

    /// Whether a later level of a scale-down has something to wait for: pods that run although none
    /// should, or will not for long.
    pub fn is_going_down(&self) -> bool {
        self.observed().is_some_and(|observed| {
            !observed.marks.ignored && (observed.replicas > 0 || observed.ready > 0)
        })
    }
}
