//! The election as this replica last saw it.

use tokio::time::Instant;

#[derive(Clone, Debug, Default)]
pub struct Election {
    /// Until when this replica leads unless it renews; none when it does not lead.
    pub(super) leads_until: Option<Instant>,
    /// Empty when nobody holds the Lease.
    pub(super) leader: String,
    /// When the leader will have missed two renewals unless it makes one; none if no Lease was
    /// seen.
    pub(super) leader_silent_from: Option<Instant>,
}

impl Election {
    /// Whether this replica surely leads now.
    pub(super) fn leads(&self) -> bool {
        self.leads_until.is_some_and(|until| Instant::now() < until)
    }
}
