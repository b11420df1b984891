//! When markers were seen to appear on the dependents.

use crate::moment::Moment;

#[derive(Clone, Copy, Debug, Default, Hash)]
pub(super) struct Markers {
    /// When the last complete probe was over before the newest marker was seen, ours included:
    /// renewals must be seen later (D-59).
    pub renewed_after: Moment,
    /// When one that others set was last seen for the first time.
    pub by_others: Option<Moment>,
    /// When this replica last held a dependent down.
    pub by_us: Moment,
}

impl Markers {
    pub(super) fn set_by_others(&mut self, last_probe: Moment, now: Moment) {
        (self.renewed_after, self.by_others) = (last_probe, Some(now));
    }

    pub(super) fn set_by_us(&mut self, last_probe: Moment, now: Moment) {
        (self.renewed_after, self.by_us) = (last_probe, now);
    }
}
