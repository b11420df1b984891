//! Follows all objects of one kind that a selector matches, for as long as it takes.
//!
//! ```text
//! API server --list, watch--> kube's watcher --events--> Follower::take
//!      ^                            |
//!      '--- restart with a list <---'-- any error: Follower::broke, a wait of less than 2 s
//! ```

use std::fmt::Debug;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::{StreamExt, pin_mut};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The longest wait before a broken watch is restarted (D-27).
const MAX_RELIST_WAIT: Duration = Duration::from_secs(2);
/// After this time without an answer to a list the attempt is given up.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// A watch ends by itself after this time, in seconds: below the 240 s after which common load balancers cut in silence.
const WATCH_TIMEOUT: u32 = 225;

/// Takes in what a watch shows.
pub trait Follower<K>: Send {
    /// Takes in one event; true when everything is known with it, which is so at the end of a list.
    fn take(&mut self, event: Event<DeserializeGuard<K>>) -> impl Future<Output = bool> + Send;

    /// Is notified that the watch broke: what happens until the end of the next list is not observed.
    fn broke(&mut self, error: &str);

    /// Waits until a re-list is wanted although the watch works; never so by default. Asked after each event.
    fn relist(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// Lets `follower` observe the objects until cancelled. After any error it restarts with a list.
pub async fn follow<K>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    mut follower: impl Follower<K>,
    cancelled: CancellationToken,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = config.timeout(WATCH_TIMEOUT);
    let mut wait = waits();
    let work = async {
        'restart: loop {
            let events = watcher(api.clone(), config.clone());
            pin_mut!(events);
            let mut complete: Option<Instant> = None;
            let error = loop {
                let next = async {
                    match complete {
                        Some(_) => Ok(events.next().await),
                        None => tokio::time::timeout(LIST_TIMEOUT, events.next()).await,
                    }
                };
                let next = tokio::select! {
                    next = next => next,
                    () = follower.relist() => continue 'restart,
                };
                match next {
                    Ok(Some(Ok(event))) => {
                        if follower.take(event).await {
                            complete = Some(Instant::now());
                        }
                    }
                    Ok(Some(Err(error))) => break error.to_string(),
                    Ok(None) => break "the watch ended".to_owned(),
                    Err(elapsed) => break elapsed.to_string(),
                }
            };
            follower.broke(&error);
            // A list that works and a watch that does not must not end in listing all the time.
            if complete.is_some_and(|since| since.elapsed() > MAX_RELIST_WAIT) {
                wait = waits();
            }
            tokio::time::sleep(wait.next().unwrap_or(MAX_RELIST_WAIT)).await;
        }
    };
    cancelled.run_until_cancelled(work).await;
}

/// The waits before a watch is restarted, each longer than the one before, up to the limit.
fn waits() -> ExponentialBackoff {
    // Jitter comes on top and at most doubles a wait.
    let waits = ExponentialBuilder::default().with_min_delay(Duration::from_millis(100)).with_max_delay(MAX_RELIST_WAIT / 2);
    waits.with_jitter().without_max_times().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wait_is_longer_than_the_limit_and_replicas_do_not_wait_in_step() {
        for _ in 0..100 {
            let waits: Vec<Duration> = waits().take(50).collect();
            assert!(waits.iter().all(|wait| *wait <= MAX_RELIST_WAIT), "{waits:?}");
            assert!(waits[0] < Duration::from_millis(201) && waits[10..].iter().all(|wait| *wait >= MAX_RELIST_WAIT / 2));
            assert!(waits[10..].iter().any(|wait| *wait != waits[10]));
        }
    }
}
