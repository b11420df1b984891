//! Follows all objects of one kind that a selector matches, for as long as it takes.
//!
//! ```text
//! API server --list, watch--> kube's watcher --events--> Changes --changes--> Follower::take
//!      ^                            |
//!      '--- restart with a list <---'-- any error: Change::Lost, a wait of less than 2 s
//! ```

use std::fmt::Debug;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::{Stream, StreamExt, pin_mut};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::change::{Change, Changes, Key, Unreadable};

/// The longest wait before a broken watch is restarted (D-27).
const MAX_RELIST_WAIT: Duration = Duration::from_secs(2);
/// After this time without an answer to a list the attempt is given up.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// A watch ends by itself after this time, in seconds: below the 240 s after which common load balancers cut in silence.
const WATCH_TIMEOUT: u32 = 225;

/// Applies what a watch shows.
pub trait Follower<V>: Send {
    /// A list begins; [`Change::Listed`] is its end.
    fn begin(&mut self) -> impl Future<Output = ()> + Send;

    fn take(&mut self, change: Change<V>) -> impl Future<Output = ()> + Send;

    /// An object could not be decoded: what is known of it stays.
    fn unreadable(&mut self, key: &Key, error: &str);

    /// Waits until a re-list is wanted although the watch works; never so by default. Asked after each event.
    fn relist(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// Lets `follower` observe the objects, pruned, until cancelled. After any error it restarts with a list.
pub async fn follow<K, V>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
    prune: impl FnMut(K) -> Option<V>,
    mut follower: impl Follower<V>,
    cancelled: CancellationToken,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = config.timeout(WATCH_TIMEOUT);
    let mut changes = Changes::new(prune);
    let mut wait = waits();
    let work = async {
        loop {
            let Err(Broken { error, listed }) =
                follow_once(watcher(api.clone(), config.clone()), &mut changes, &mut follower).await
            else {
                continue;
            };
            follower.take(Change::Lost(error)).await;
            // A list that works and a watch that does not must not end in listing all the time.
            if listed.is_some_and(|since| since.elapsed() > MAX_RELIST_WAIT) {
                wait = waits();
            }
            sleep(wait.next().unwrap_or(MAX_RELIST_WAIT)).await;
        }
    };
    cancelled.run_until_cancelled(work).await;
}

struct Broken {
    error: String,
    /// When the list was complete.
    listed: Option<Instant>,
}

/// Follows one watch until it breaks or a re-list is wanted.
async fn follow_once<K: Resource, V>(
    events: impl Stream<Item = Result<Event<DeserializeGuard<K>>, watcher::Error>>,
    changes: &mut Changes<V, impl FnMut(K) -> Option<V>>,
    follower: &mut impl Follower<V>,
) -> Result<(), Broken> {
    pin_mut!(events);
    let mut listed = None;
    let error = loop {
        let next = async {
            match listed {
                Some(_) => Ok(events.next().await),
                None => timeout(LIST_TIMEOUT, events.next()).await,
            }
        };
        let next = tokio::select! {
            next = next => next,
            () = follower.relist() => return Ok(()),
        };
        let event = match next {
            Ok(Some(Ok(event))) => event,
            Ok(Some(Err(error))) => break error.to_string(),
            Ok(None) => break "the watch ended".to_owned(),
            Err(elapsed) => break elapsed.to_string(),
        };
        if matches!(event, Event::Init) {
            follower.begin().await;
        }
        match changes.of(event) {
            Ok(None) => {}
            Ok(Some(change)) => {
                let is_list = matches!(change, Change::Listed { .. });
                follower.take(change).await;
                listed = is_list.then(Instant::now).or(listed);
            }
            Err(Unreadable { key, error }) => follower.unreadable(&key, &error),
        }
    };
    Err(Broken { error, listed })
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
