//! The election as this replica last saw it.

use tokio::time::Instant;

#[derive(Debug, Default)]
pub struct Election {
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
