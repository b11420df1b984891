//! The fence between this process and the seed: open while this process surely leads.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Says whether this process may write: whether it leads, and its last renewal is fresh enough.
#[derive(Clone, Debug)]
pub struct Fence(watch::Receiver<Option<Instant>>);

#[derive(Debug)]
pub struct FenceKeeper(watch::Sender<Option<Instant>>);

impl Fence {
    /// A fence that is closed until its keeper opens it.
    pub fn closed() -> (FenceKeeper, Self) {
        let (keeper, fence) = watch::channel(None);
        (FenceKeeper(keeper), Self(fence))
    }

    /// A fence that is always open: there is no election.
    pub fn always_open() -> Self {
        let far = Duration::from_secs(100 * 365 * 24 * 3600);
        Self(watch::channel(Some(Instant::now() + far)).1)
    }

    /// A fence that never opens: nothing is to be written.
    pub fn always_closed() -> Self {
        Self(watch::channel(None).1)
    }

    /// Whether a write may be sent now.
    pub fn is_open(&self) -> bool {
        self.0.borrow().is_some_and(|until| Instant::now() < until)
    }

    /// Waits until it opens; for ever when its keeper is gone.
    pub async fn opened(&self) {
        if self.0.clone().wait_for(Option::is_some).await.is_err() {
            std::future::pending().await
        }
    }

    /// Does something that must not go on behind a closed fence, such as a write that may first
    /// wait for a connection. None when the fence was closed or closes before it is done; it is
    /// then dropped.
    pub async fn while_open<T>(&self, act: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.shut() => None,
            done = act => Some(done),
        }
    }

    async fn shut(&self) {
        let mut end = self.0.clone();
        loop {
            let until = *end.borrow_and_update();
            let Some(until) = until.filter(|until| Instant::now() < *until) else {
                return;
            };
            tokio::select! {
                () = sleep_until(until) => {}
                Ok(()) = end.changed() => {}
            }
        }
    }
}

impl FenceKeeper {
    /// Opens the fence, or keeps it open for longer.
    pub(super) fn open_until(&self, end: Instant) {
        self.0.send_replace(Some(end));
    }

    pub(super) fn close(&self) {
        self.0.send_replace(None);
    }

    /// When it closes by itself; none when it is not open at all.
    pub(super) fn until(&self) -> Option<Instant> {
        *self.0.borrow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_fence_closes_by_itself_unless_it_is_moved() {
        let (keeper, fence) = Fence::closed();
        assert!(!fence.is_open());
        keeper.open_until(Instant::now() + MOMENT);
        fence.opened().await;
        assert!(fence.is_open());
        tokio::time::advance(MOMENT / 2).await;
        keeper.open_until(Instant::now() + MOMENT);
        tokio::time::advance(MOMENT - Duration::from_millis(1)).await;
        assert!(fence.is_open());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!fence.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_ends_with_the_fence_and_not_with_an_end_that_was_put_off() {
        let (keeper, fence) = Fence::closed();
        assert_eq!(
            fence.while_open(async { 1 }).await,
            None,
            "closed from the beginning"
        );
        let begin = Instant::now();
        keeper.open_until(begin + MOMENT);
        let put_off = async {
            sleep_until(begin + MOMENT / 2).await;
            keeper.open_until(begin + 2 * MOMENT);
        };
        let (ended, ()) = tokio::join!(fence.while_open(std::future::pending::<()>()), put_off);
        assert_eq!((ended, Instant::now()), (None, begin + 2 * MOMENT));
    }

    #[tokio::test(start_paused = true)]
    async fn closing_ends_what_is_under_way_at_once() {
        let (keeper, fence) = Fence::closed();
        let begin = Instant::now();
        keeper.open_until(begin + MOMENT);
        let close = async { keeper.close() };
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
