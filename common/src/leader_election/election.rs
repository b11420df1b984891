//! The election as this replica last saw it.

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Election {
    /// End of leadership unless this replica renews; `None` when it does not lead.
    pub(super) leads_until: Option<Instant>,
    /// Empty when nobody holds the Lease.
    pub(super) leader: String,
    /// Time of the leader's second missed renewal, unless it makes one; `None` if no Lease was
    /// seen.
    pub(super) leader_silent_from: Option<Instant>,
}

impl Election {
    /// True if this replica surely leads now.
    pub(super) fn leads(&self) -> bool {
        self.leads_until.is_some_and(|until| Instant::now() < until)
    }
}

/// The election, shared by the elector with all who follow it. They wake in the order in which they
/// began to wait, unlike those of a watch channel.
#[derive(Debug, Default)]
pub struct SharedElection {
    election: Mutex<Election>,
    changed: Notify,
}

impl SharedElection {
    pub(super) fn lock(&self) -> MutexGuard<'_, Election> {
        self.election.lock()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Election)) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }

    /// The next change from now on, also before this is polled.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }
}
