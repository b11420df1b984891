//! Follows all objects of one kind that a selector matches, for as long as it takes.
//!
//! ```text
//! API server --list--> watch --events--> Changes --changes--> Follower::take
//!                      ^   |
//!                      |   |-- its ordinary end: opened again where it ended, at most once a second
//!                      |   '-- ended at once, or 429: Change::Lost, a wait (Retry-After), opened again where it ended
//!        list <--- any other error: Change::Lost, a wait of less than 2 s
//!           '---- 404 before there was any list, of a kind that may be absent: as an empty list, for 30 s
//! ```
//!
//! kube's watcher is not used: it opens a watch that ends at once again without a wait, and does
//! not say that a watch is open. When a watch goes on and when all is listed again is as in
//! client-go's Reflector, but for a server that was not reached: it may have come back from a
//! backup, and then a watch from a later version than it has would stay silent.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{Config, Event};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::change::{Change, Changes, Key, Unreadable};
use crate::logging::with_causes;
use crate::status_message::retry_after;

/// The longest wait before a broken watch is restarted (D-27), unless the API server asks for more.
const MAX_RELIST_WAIT: Duration = Duration::from_secs(2);
/// The wait after a 429 that asks for none, and the longest that is granted.
const THROTTLED_WAIT: Duration = Duration::from_secs(10);
const MAX_THROTTLED_WAIT: Duration = Duration::from_secs(60);
/// After this time without an answer to a page of a list the attempt is given up: kube-apiserver
/// does so after 60 s (--request-timeout).
const LIST_TIMEOUT: Duration = Duration::from_secs(65);
/// A watch ends by itself after this time, in seconds: below the 240 s after which common load
/// balancers cut in silence.
const WATCH_TIMEOUT: u32 = 225;
/// How often a kind that is absent is listed all the same: often enough that the follower never
/// takes it for unknown (D-27).
const ABSENT_WAIT: Duration = Duration::from_secs(30);
/// A watch that ends sooner, without an event, did not work, as for client-go ("very short watch").
const MIN_WATCH: Duration = Duration::from_secs(1);

/// Applies what a watch shows.
pub trait Follower<V>: Send {
    /// Names the objects in logs.
    fn what(&self) -> &'static str;

    /// Whether there are no objects while the API server does not know their kind: no CRD of its
    /// API group is installed. Once they were listed a 404 is an error as any other.
    fn may_be_absent(&self) -> bool {
        false
    }

    /// A list begins; [`Change::Listed`] is its end.
    fn begin(&mut self) -> impl Future<Output = ()> + Send;

    fn take(&mut self, change: Change<V>) -> impl Future<Output = ()> + Send;

    /// An object could not be decoded: what is known of it stays.
    fn unreadable(&mut self, key: &Key, error: &str);

    /// Waits until a re-list is wanted although the watch works; never so by default. Asked after
    /// each event.
    fn relist(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// Lets `follower` observe the objects, pruned, until cancelled.
pub async fn follow<K, V>(
    api: Api<DeserializeGuard<K>>,
    config: Config,
    prune: impl FnMut(K) -> Option<V>,
    follower: impl Follower<V>,
    cancelled: CancellationToken,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let changes = Changes::new(prune);
    let mut watched = Watched {
        api,
        config,
        changes,
        follower,
        version: None,
        opened: None,
        lost: false,
        broken_since: None,
        listed: false,
        absent: false,
    };
    cancelled.run_until_cancelled(watched.run()).await;
}

struct Watched<K, V, P, F> {
    api: Api<DeserializeGuard<K>>,
    config: Config,
    changes: Changes<V, P>,
    follower: F,
    /// Where the next watch begins; none when all is to be listed first.
    version: Option<String>,
    /// When the last watch was opened.
    opened: Option<Instant>,
    /// Whether the follower was notified of a break, and of nothing since.
    lost: bool,
    /// Since when the watch has not worked, so that the log has changes only; a list alone ends it
    /// not.
    broken_since: Option<Instant>,
    listed: bool,
    /// Whether the kind was found to be absent.
    absent: bool,
}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("no answer to a list within {LIST_TIMEOUT:?}")]
    ListTimeout,
    #[error("the watch ended as soon as it was open")]
    Short,
    #[error("an answer has no resourceVersion")]
    NoVersion,
    #[error(transparent)]
    Api(#[from] kube::Error),
}

impl Broken {
    /// How long the API server is to be left alone.
    fn requested_wait(&self) -> Duration {
        let Self::Api(kube::Error::Api(status)) = self else {
            return Duration::ZERO;
        };
        match (retry_after(status), status.code) {
            (None, 429) => THROTTLED_WAIT,
            (wait, _) => wait.unwrap_or_default().min(MAX_THROTTLED_WAIT),
        }
    }

    /// Whether a watch can still go on where the last one ended: the API server was there all the
    /// time.
    fn can_resume(&self) -> bool {
        match self {
            Self::Short => true,
            Self::Api(kube::Error::Api(status)) => status.code == 429,
            Self::ListTimeout | Self::NoVersion | Self::Api(_) => false,
        }
    }
}

impl<K, V, P, F> Watched<K, V, P, F>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    P: FnMut(K) -> Option<V>,
    F: Follower<V>,
{
    async fn run(&mut self) {
        let mut backoff = waits();
        loop {
            let Err(broken) = self.follow_once().await else {
                continue;
            };
            if self.is_absent(&broken).await {
                if !std::mem::replace(&mut self.absent, true) {
                    tracing::warn!(
                        what = self.follower.what(),
                        "the API server has no such kind: as if there were none, until it has"
                    );
                }
                self.apply(Event::Init).await;
                self.apply(Event::InitDone).await;
                sleep(ABSENT_WAIT).await;
                continue;
            }
            self.log(&broken);
            self.lost = true;
            self.follower.take(Change::Lost).await;
            if !broken.can_resume() {
                self.version = None;
            }
            // A list that works and a watch that does not must not end in listing all the time.
            if self
                .opened
                .take()
                .is_some_and(|since| since.elapsed() > MAX_RELIST_WAIT)
            {
                backoff = waits();
            }
            sleep(backoff.wait().max(broken.requested_wait())).await;
        }
    }

    /// A 404 alone is no evidence: a proxy says so, too, and an API server of a version that it has
    /// ceased to serve. That the API server's own list of groups lacks the kind's is.
    async fn is_absent(&mut self, broken: &Broken) -> bool {
        let not_found =
            matches!(broken, Broken::Api(kube::Error::Api(status)) if status.code == 404);
        if self.listed || !not_found || !self.follower.may_be_absent() {
            return false;
        }
        // /apis/GROUP/VERSION/...
        let Some(group) = self.api.resource_url().split('/').nth(2) else {
            return false;
        };
        match timeout(
            LIST_TIMEOUT,
            self.api.clone().into_client().list_api_groups(),
        )
        .await
        {
            Ok(Ok(list)) => {
                !list.groups.is_empty() && list.groups.iter().all(|known| known.name != group)
            }
            _ => false,
        }
    }

    /// Follows one watch, after a list if it cannot go on without, until it ends or breaks or a
    /// re-list is wanted.
    async fn follow_once(&mut self) -> Result<(), Broken> {
        let version = match self.version.clone() {
            Some(version) => version,
            None => self.list().await?,
        };
        let params = WatchParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            ..WatchParams::default()
        };
        let mut events = self
            .api
            .watch(&params.timeout(WATCH_TIMEOUT), &version)
            .await?
            .boxed();
        let opened = Instant::now();
        self.opened = Some(opened);
        self.version = Some(version);
        if !self.lost {
            self.follower.take(Change::Watched).await;
        }
        let mut works = false;
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = self.follower.relist() => {
                    self.version = None;
                    break;
                }
                () = sleep_until(opened + MIN_WATCH), if !works => {
                    works = true;
                    self.works().await;
                    continue;
                }
            };
            let Some(event) = event.transpose()? else {
                if !works {
                    return Err(Broken::Short);
                }
                self.follower.take(Change::Ended).await;
                sleep_until(opened + MIN_WATCH).await;
                return Ok(());
            };
            let (version, event) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    (object.resource_version(), Some(Event::Apply(object)))
                }
                WatchEvent::Deleted(object) => {
                    (object.resource_version(), Some(Event::Delete(object)))
                }
                WatchEvent::Bookmark(bookmark) => (Some(bookmark.metadata.resource_version), None),
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
            };
            let version = version
                .filter(|version| !version.is_empty())
                .ok_or(Broken::NoVersion)?;
            if !std::mem::replace(&mut works, true) {
                self.works().await;
            }
            if let Some(event) = event {
                self.apply(event).await;
            }
            self.version = Some(version);
        }
        self.follower.take(Change::Ended).await;
        Ok(())
    }

    /// Lists all pages; the version from which a watch goes on.
    async fn list(&mut self) -> Result<String, Broken> {
        let Config {
            label_selector,
            field_selector,
            page_size,
            ..
        } = self.config.clone();
        let mut params = ListParams {
            label_selector,
            field_selector,
            limit: page_size,
            ..ListParams::default()
        };
        self.follower.begin().await;
        self.apply(Event::Init).await;
        loop {
            let page = timeout(LIST_TIMEOUT, self.api.list(&params))
                .await
                .map_err(|_| Broken::ListTimeout)??;
            for object in page.items {
                self.apply(Event::InitApply(object)).await;
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                let version = page
                    .metadata
                    .resource_version
                    .filter(|version| !version.is_empty())
                    .ok_or(Broken::NoVersion)?;
                self.apply(Event::InitDone).await;
                (self.listed, self.lost) = (true, false);
                if std::mem::take(&mut self.absent) {
                    tracing::info!(
                        what = self.follower.what(),
                        "the API server has this kind now"
                    );
                }
                return Ok(version);
            }
        }
    }

    async fn apply(&mut self, event: Event<DeserializeGuard<K>>) {
        match self.changes.of(event) {
            Ok(None) => {}
            Ok(Some(change)) => self.follower.take(change).await,
            Err(Unreadable { key, error }) => self.follower.unreadable(&key, &error),
        }
    }

    /// The watch works, and what has happened since the last one is here: the API server sends that
    /// first.
    async fn works(&mut self) {
        if let Some(since) = self.broken_since.take() {
            tracing::info!(
                what = self.follower.what(),
                broken_for_s = since.elapsed().as_secs_f64(),
                "watch works again"
            );
        }
        if std::mem::take(&mut self.lost) {
            self.follower.take(Change::Watched).await;
        }
    }

    fn log(&mut self, broken: &Broken) {
        let (what, error) = (self.follower.what(), with_causes(broken));
        let again = self.broken_since.is_some();
        let broken_for_s = self
            .broken_since
            .get_or_insert_with(Instant::now)
            .elapsed()
            .as_secs_f64();
        match (again, self.listed) {
            (true, _) => tracing::trace!(what, broken_for_s, error, "still broken"),
            (false, true) => tracing::warn!(what, error, "watch broke, it is restarted"),
            (false, false) => tracing::warn!(what, error, "cannot be listed yet, trying again"),
        }
    }
}

/// The waits before a watch is restarted: half of the limit, which jitter may double.
fn waits() -> Backoff {
    Backoff::jittered(Duration::from_millis(100), MAX_RELIST_WAIT / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wait_is_longer_than_the_limit_and_replicas_do_not_wait_in_step() {
        for _ in 0..100 {
            let mut backoff = waits();
            let waits: Vec<Duration> = std::iter::repeat_with(|| backoff.wait()).take(50).collect();
            assert!(
                waits.iter().all(|wait| *wait <= MAX_RELIST_WAIT),
                "{waits:?}"
            );
            assert!(
                waits[0] < Duration::from_millis(201)
                    && waits[10..].iter().all(|wait| *wait >= MAX_RELIST_WAIT / 2)
            );
            assert!(waits[10..].iter().any(|wait| *wait != waits[10]));
        }
    }
}
