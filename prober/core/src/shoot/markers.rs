//! When markers were seen to appear on the dependents.

use crate::moment::Moment;

#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Markers {
    /// When the newest one was first seen, ours included.
    pub seen: Moment,
    /// When the last complete probe was over before that: renewals must be seen later (D-59).
    pub renewed_after: Moment,
    /// When this replica last held a dependent down.
    pub by_us: Moment,
}

impl Markers {
    pub(super) fn appeared(&mut self, last_probe: Moment, now: Moment) {
        (self.renewed_after, self.seen) = (last_probe, now);
    }
}
