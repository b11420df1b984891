//! Lists and watches all objects of one kind that a selector matches, as client-go's Reflector
//! does.
//!
//! ```text
//! API server --list, watch--> Reflector --Change--> ChangeHandler::handle
//!                      ^   |
//!                      |   |-- its ordinary end: opened again where it ended, at most once a second
//!                      |   '-- ended at once, or 429: Change::Lost, a wait (Retry-After), opened again where it ended
//!        list <--- any other error: Change::Lost, a wait of less than 2 s
//!           '---- 404 before there was any list, of a kind that may be absent: as an empty list, for 30 s
//! ```
//!
//! kube's watcher is not used: it opens a watch that ends at once again without a wait, and does
//! not say that a watch is open. When a watch goes on and when all is listed again is as in
//! client-go, except for a server that was not reached: it may have been restored from a backup,
//! and then a watch from a later version than it has would stay silent.

use std::time::Duration;

use kube::api::{ListParams, WatchParams};
use kube::core::Status;
use kube::runtime::watcher::Config;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::api_failure::ApiFailure;
use crate::backoff::Backoff;
use crate::change::{Change, Key, Listed, key_of};
use crate::logging::with_causes;
use crate::objects::{self, ObjectEvent, UnreadableObject};
use crate::status_message::retry_after;

/// The longest wait before a broken watch is restarted (D-27), unless the API server asks for more.
const MAX_RELIST_WAIT: Duration = Duration::from_secs(2);
/// The wait after a 429 that asks for none, and the longest that is granted.
const THROTTLED_WAIT: Duration = Duration::from_secs(10);
const MAX_THROTTLED_WAIT: Duration = Duration::from_secs(60);
/// Longest wait for the answer to a page of a list: kube-apiserver gives up after 60 s
/// (--request-timeout).
const LIST_TIMEOUT: Duration = Duration::from_secs(65);
/// A watch ends by itself after this time, in seconds: below the 240 s after which common load
/// balancers cut in silence.
const WATCH_TIMEOUT: u32 = 225;
/// Interval at which an absent kind is listed all the same: often enough that it never counts as
/// unknown (D-27).
const ABSENT_WAIT: Duration = Duration::from_secs(30);
/// The most that a list may hold and the most pages it may come in, whatever the API server says:
/// Kubernetes is made for up to 150,000 pods, and 50 Clusters come to a page.
const MAX_LISTED: usize = 200_000;
const MAX_PAGES: usize = 1_000;
/// A watch that ends sooner, without an event, did not work, as for client-go ("very short watch").
const MIN_WATCH: Duration = Duration::from_secs(1);

/// Applies what a watch shows.
pub trait ChangeHandler<V>: Send {
    /// Names the objects in logs.
    fn resource(&self) -> &'static str;

    /// True if there are no objects while the API server does not know their kind: no CRD of its
    /// API group is installed. Once they were listed a 404 is an error as any other.
    fn may_be_absent(&self) -> bool {
        false
    }

    /// A list is about to be requested; [`Change::Listed`] is its result.
    fn list_begins(&mut self) {}

    fn handle(&mut self, change: Change<V>) -> impl Future<Output = ()> + Send;

    /// A list or a watch has failed; `not_found`: it was answered with 404.
    fn failed(&mut self, _not_found: bool) {}

    /// An object could not be read: what is known of it stays.
    fn unreadable(&mut self) {}

    /// Waits until a re-list is requested although the watch works; by default that never happens.
    fn relist_requested(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// Lists and watches for as long as it is polled. `prune` says what is kept of an object; `None`:
/// it is of no interest.
pub async fn reflect<K, V>(
    api: Api<K>,
    config: Config,
    prune: impl FnMut(K) -> Option<V>,
    handler: impl ChangeHandler<V>,
) where
    K: Resource + Clone + DeserializeOwned,
{
    let mut reflector = Reflector {
        api,
        config,
        prune,
        handler,
        version: None,
        opened: None,
        lost: false,
        broken_since: None,
        listed: false,
        absent: false,
    };
    reflector.run().await;
}

struct Reflector<K, P, H> {
    api: Api<K>,
    config: Config,
    prune: P,
    handler: H,
    /// Start of the next watch; `None` if a list comes first.
    version: Option<String>,
    /// Time the last watch was opened.
    opened: Option<Instant>,
    /// True if the handler was notified of a break, and of nothing since.
    lost: bool,
    /// Start of the current break, so that only changes of that are logged; a list alone does not
    /// end it.
    broken_since: Option<Instant>,
    listed: bool,
    /// True if the kind was found to be absent.
    absent: bool,
}

#[derive(Debug, thiserror::Error)]
enum WatchError {
    #[error("no answer to a list within {LIST_TIMEOUT:?}")]
    ListTimeout,
    #[error("the watch ended as soon as it was open")]
    VeryShortWatch,
    #[error("an answer has no resourceVersion")]
    NoVersion,
    #[error("a page of the list says that it follows itself")]
    SamePage,
    #[error("the list has more than {MAX_LISTED} objects, or {MAX_PAGES} pages")]
    EndlessList,
    #[error(transparent)]
    Api(#[from] kube::Error),
}

impl WatchError {
    fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(kube::Error::Api(status)) => Some(status),
            _ => None,
        }
    }

    fn is_not_found(&self) -> bool {
        self.status().map(ApiFailure::from) == Some(ApiFailure::NotFound)
    }

    fn is_throttled(&self) -> bool {
        let failure = self.status().map(ApiFailure::from);
        matches!(failure, Some(ApiFailure::Throttled(_)))
    }

    /// The wait that the API server asks for.
    fn requested_wait(&self) -> Duration {
        let status = self.status();
        match status.and_then(retry_after) {
            Some(wait) => wait.min(MAX_THROTTLED_WAIT),
            None if self.is_throttled() => THROTTLED_WAIT,
            None => Duration::ZERO,
        }
    }

    /// True if a watch can go on where the last one ended: the API server was there all the time.
    fn can_resume(&self) -> bool {
        self.is_throttled() || matches!(self, Self::VeryShortWatch)
    }
}

impl<K, V, P, H> Reflector<K, P, H>
where
    K: Resource + Clone + DeserializeOwned,
    P: FnMut(K) -> Option<V>,
    H: ChangeHandler<V>,
{
    async fn run(&mut self) {
        let mut backoff = backoff();
        loop {
            let Err(error) = self.list_and_watch().await else {
                continue;
            };
            if self.is_absent(&error).await {
                if !std::mem::replace(&mut self.absent, true) {
                    tracing::warn!(
                        what = self.handler.resource(),
                        "the API server has no such kind: as if there were none, until it has"
                    );
                }
                self.handler.list_begins();
                self.handler.handle(Change::Listed(Listed::new())).await;
                sleep(ABSENT_WAIT).await;
                continue;
            }
            self.handler.failed(error.is_not_found());
            self.log(&error);
            self.lost = true;
            self.handler.handle(Change::Lost).await;
            if !error.can_resume() {
                self.version = None;
            }
            // Without this, a list that works and a watch that does not would end in listing all
            // the time.
            let opened = self.opened.take();
            if opened.is_some_and(|since| since.elapsed() > MAX_RELIST_WAIT) {
                backoff = self::backoff();
            }
            sleep(backoff.wait().max(error.requested_wait())).await;
        }
    }

    /// A 404 alone is no evidence: a proxy may answer it, and so does an API server for a version
    /// that it no longer serves. A list of its API groups without the kind's is.
    async fn is_absent(&mut self, error: &WatchError) -> bool {
        if self.listed || !error.is_not_found() || !self.handler.may_be_absent() {
            return false;
        }
        // /apis/GROUP/VERSION/...
        let Some(group) = self.api.resource_url().split('/').nth(2) else {
            return false;
        };
        let client = self.api.clone().into_client();
        match timeout(LIST_TIMEOUT, client.list_api_groups()).await {
            Ok(Ok(list)) => {
                !list.groups.is_empty() && list.groups.iter().all(|known| known.name != group)
            }
            _ => false,
        }
    }

    /// Follows one watch, after a list if it cannot go on without, until it ends or breaks or a
    /// re-list is requested.
    async fn list_and_watch(&mut self) -> Result<(), WatchError> {
        let version = match self.version.clone() {
            Some(version) => version,
            None => self.list().await?,
        };
        let params = WatchParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            timeout: Some(WATCH_TIMEOUT),
            ..WatchParams::default()
        };
        let api = self.api.clone();
        let mut events = objects::watch(&api, &params, &version).await?;
        let opened = Instant::now();
        self.opened = Some(opened);
        self.version = Some(version);
        if !self.lost {
            self.handler.handle(Change::Watched).await;
        }
        let mut works = false;
        loop {
            let event = tokio::select! {
                biased;
                () = self.handler.relist_requested() => {
                    self.version = None;
                    self.handler.handle(Change::Ended).await;
                    return Ok(());
                }
                event = events.next() => event,
                () = sleep_until(opened + MIN_WATCH), if !works => {
                    works = true;
                    self.works().await;
                    continue;
                }
            };
            match event? {
                Some(event) => self.apply(event, &mut works).await?,
                None if works => {
                    self.handler.handle(Change::Ended).await;
                    sleep_until(opened + MIN_WATCH).await;
                    return Ok(());
                }
                None => return Err(WatchError::VeryShortWatch),
            }
        }
    }

    /// Applies an event of a watch, which shows that the watch works.
    async fn apply(&mut self, event: ObjectEvent<K>, works: &mut bool) -> Result<(), WatchError> {
        let version = known_version(event.version())?;
        if !std::mem::replace(works, true) {
            self.works().await;
        }
        let change = match event {
            ObjectEvent::Applied(Ok(object)) => {
                let key = key_of(&object);
                Some(match (self.prune)(object) {
                    Some(value) => Change::Applied(key, value),
                    None => Change::Gone(key),
                })
            }
            ObjectEvent::Applied(Err(unreadable)) => {
                self.unreadable(unreadable);
                None
            }
            ObjectEvent::Deleted(key, _) => Some(Change::Gone(key)),
            ObjectEvent::Bookmark(_) => None,
        };
        if let Some(change) = change {
            self.handler.handle(change).await;
        }
        self.version = Some(version);
        Ok(())
    }

    /// Lists all pages; the version from which a watch goes on.
    async fn list(&mut self) -> Result<String, WatchError> {
        let mut params = ListParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            limit: self.config.page_size,
            ..ListParams::default()
        };
        self.handler.list_begins();
        let (api, mut listed, mut count) = (self.api.clone(), Listed::new(), 0);
        for _ in 0..MAX_PAGES {
            let page = objects::list(&api, &params, |object| {
                count += 1;
                if count > MAX_LISTED {
                    return Err(WatchError::EndlessList);
                }
                self.keep(object, &mut listed);
                Ok(())
            });
            let page = timeout(LIST_TIMEOUT, page).await;
            let page = page.map_err(|_| WatchError::ListTimeout)??;
            let next = page.next.filter(|token| !token.is_empty());
            if next.is_none() {
                let version = known_version(page.resource_version)?;
                self.listed(listed).await;
                return Ok(version);
            }
            if next == params.continue_token {
                return Err(WatchError::SamePage);
            }
            params.continue_token = next;
        }
        Err(WatchError::EndlessList)
    }

    /// Adds an object of a list to those that are kept.
    fn keep(&mut self, object: Result<K, UnreadableObject>, listed: &mut Listed<V>) {
        let (key, kept) = match object {
            Ok(object) => {
                let key = key_of(&object);
                let Some(value) = (self.prune)(object) else {
                    return;
                };
                (key, Some(value))
            }
            Err(unreadable) => (self.unreadable(unreadable), None),
        };
        let names = listed.entry(key.namespace).or_default();
        names.insert(key.name, kept);
    }

    async fn listed(&mut self, listed: Listed<V>) {
        self.handler.handle(Change::Listed(listed)).await;
        (self.listed, self.lost) = (true, false);
        if std::mem::take(&mut self.absent) {
            tracing::info!(
                what = self.handler.resource(),
                "the API server has this kind now"
            );
        }
    }

    /// Logs and counts an object that cannot be read. Returns its key.
    fn unreadable(&mut self, unreadable: UnreadableObject) -> Key {
        let UnreadableObject { key, error, .. } = unreadable;
        tracing::warn!(
            what = self.handler.resource(),
            namespace = key.namespace,
            name = key.name,
            error,
            "object cannot be understood, what was known of it stays"
        );
        self.handler.unreadable();
        key
    }

    /// The watch works, and what has happened since the last one is here: the API server sends that
    /// first.
    async fn works(&mut self) {
        if let Some(since) = self.broken_since.take() {
            tracing::info!(
                what = self.handler.resource(),
                broken_for_s = since.elapsed().as_secs_f64(),
                "watch works again"
            );
        }
        if std::mem::take(&mut self.lost) {
            self.handler.handle(Change::Watched).await;
        }
    }

    fn log(&mut self, error: &WatchError) {
        if self.broken_since.is_some() {
            return;
        }
        self.broken_since = Some(Instant::now());
        let (what, error) = (self.handler.resource(), with_causes(error));
        if self.listed {
            tracing::warn!(what, error, "watch broke, it is restarted");
        } else {
            tracing::warn!(what, error, "cannot be listed yet, trying again");
        }
    }
}

/// The version to watch from.
fn known_version(version: Option<String>) -> Result<String, WatchError> {
    version
        .filter(|version| !version.is_empty())
        .ok_or(WatchError::NoVersion)
}

/// The waits before a watch is restarted: half of the limit, which jitter may double.
fn backoff() -> Backoff {
    Backoff::new(Duration::from_millis(100), MAX_RELIST_WAIT / 2)
}

#[cfg(test)]
mod tests;
