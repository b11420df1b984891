//! The fence between this process and the seed: open while this process surely leads.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::election::Election;
use crate::followed::Followed;

/// Gate for writes: open while this process leads and its last renewal is fresh enough.
#[derive(Clone, Debug)]
pub struct Fence(Arc<Followed<Election>>);

impl Fence {
    pub(super) fn new(election: Arc<Followed<Election>>) -> Self {
        Self(election)
    }

    /// A fence that is always open: there is no election.
    pub fn always_open() -> Self {
        let far = Duration::from_secs(100 * 365 * 24 * 3600);
        let election = Followed::<Election>::default();
        election.change(|election| election.leads_until = Some(Instant::now() + far));
        Self(Arc::new(election))
    }

    /// A fence that never opens: nothing is to be written.
    pub fn always_closed() -> Self {
        Self(Arc::default())
    }

    /// True if a write may be sent now.
    pub fn is_open(&self) -> bool {
        self.0.lock().leads()
    }

    /// Waits until it opens; for ever when the elector is gone.
    pub async fn opened(&self) {
        let leads = |election: &Election| election.leads_until.is_some();
        self.0.reaches(leads).await;
    }

    /// Does something that must not go on behind a closed fence, such as a write that may first
    /// wait for a connection. `None` if the fence was closed or closes before it is done; it is
    /// then dropped.
    pub async fn while_open<T>(&self, act: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.closed() => None,
            done = act => Some(done),
        }
    }

    async fn closed(&self) {
        loop {
            let changed = self.0.changed();
            let until = self.0.lock().leads_until;
            let Some(until) = until.filter(|until| Instant::now() < *until) else {
                return;
            };
            tokio::select! {
                biased;
                () = sleep_until(until) => {}
                () = changed => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fence_closes_by_itself_unless_it_is_moved() {
        let election = Arc::<Followed<Election>>::default();
        let (fence, start) = (Fence::new(Arc::clone(&election)), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let open_until = |end: Option<u64>| {
            election.change(|election| election.leads_until = end.map(after));
        };
        assert_eq!(
            (fence.is_open(), fence.while_open(async { 1 }).await),
            (false, None)
        );
        // What is under way ends with the fence, and not with an end that was put off.
        for (end, moved_at, new_end, closed_at) in [
            (10, 5, Some(20), 20),
            (30, 25, Some(28), 28),
            (40, 35, None, 35),
        ] {
            open_until(Some(end));
            fence.opened().await;
            let moved = async {
                sleep_until(after(moved_at)).await;
                assert!(fence.is_open());
                open_until(new_end);
            };
            let (ended, ()) = tokio::join!(fence.while_open(pending::<()>()), moved);
            let state = (ended, Instant::now(), fence.is_open());
            assert_eq!(state, (None, after(closed_at), false));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_election_nothing_is_held_back() {
        let fence = Fence::always_open();
        fence.opened().await;
        let slow = tokio::time::sleep(Duration::from_secs(24 * 3600));
        assert_eq!(fence.while_open(slow).await, Some(()));
    }
}
