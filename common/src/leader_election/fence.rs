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
    use super::*;

    const MOMENT: Duration = Duration::from_secs(10);

    fn closed() -> (Arc<Followed<Election>>, Fence) {
        let election = Arc::<Followed<Election>>::default();
        (Arc::clone(&election), Fence::new(election))
    }

    fn open_until(election: &Followed<Election>, end: Instant) {
        election.change(|election| election.leads_until = Some(end));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fence_closes_by_itself_unless_it_is_moved() {
        let (election, fence) = closed();
        assert!(!fence.is_open());
        open_until(&election, Instant::now() + MOMENT);
        fence.opened().await;
        assert!(fence.is_open());
        tokio::time::advance(MOMENT / 2).await;
        open_until(&election, Instant::now() + MOMENT);
        tokio::time::advance(MOMENT - Duration::from_millis(1)).await;
        assert!(fence.is_open());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!fence.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_ends_with_the_fence_and_not_with_an_end_that_was_put_off() {
        let (election, fence) = closed();
        assert_eq!(
            fence.while_open(async { 1 }).await,
            None,
            "closed from the beginning"
        );
        let begin = Instant::now();
        open_until(&election, begin + MOMENT);
        let put_off = async {
            sleep_until(begin + MOMENT / 2).await;
            open_until(&election, begin + 2 * MOMENT);
        };
        let (ended, ()) = tokio::join!(fence.while_open(std::future::pending::<()>()), put_off);
        assert_eq!((ended, Instant::now()), (None, begin + 2 * MOMENT));
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_what_is_under_way_at_once() {
        let (election, fence) = closed();
        let begin = Instant::now();
        open_until(&election, begin + MOMENT);
        let close = async { election.change(|election| election.leads_until = None) };
        let (ended, ()) = tokio::join!(fence.while_open(std::future::pending::<()>()), close);
        assert_eq!((ended, Instant::now()), (None, begin));
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_election_nothing_is_held_back() {
        let fence = Fence::always_open();
        fence.opened().await;
        let slow = tokio::time::sleep(Duration::from_secs(24 * 3600));
        assert_eq!(fence.while_open(slow).await, Some(()));
    }
}
