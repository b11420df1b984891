//! Lists and watches all objects of one kind that a selector matches, as client-go's Reflector
//! does.
//!
//! ```text
//! API server --list, watch--> Reflector --Change--> ChangeHandler::handle
//!                      ^   |
//!                      |   |-- its ordinary end: opened again where it ended, at most once a second
//!                      |   '-- ended at once, or 429: Change::Lost, a wait (Retry-After), opened again where it ended
//!        list <--- any other error: Change::Lost, a wait of less than 2 s
//! ```
//!
//! kube's watcher is not used: it opens a watch that ends at once again without a wait, and does
//! not say that a watch works. When a watch goes on and when all is listed again is as in
//! client-go, except for a server that was not reached: it may have been restored from a backup,
//! and then a watch from a later version than it has would stay silent.

use std::pin::{Pin, pin};
use std::time::Duration;

use futures::{Stream, TryStreamExt};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Request;
use kube::{Api, Error, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, sleep_until};

use crate::api_failure::ApiFailure;
use crate::backoff::Backoff;
use crate::change::{Change, Listed};
use crate::logging::with_causes;
use crate::objects::{self, ReadError, Readable, known_version};

/// The longest wait before a broken watch is restarted (D-27), unless the API server asks for more.
const MAX_RELIST_WAIT: Duration = Duration::from_secs(2);
/// The wait after a 429 that asks for none, and the longest that is granted.
const THROTTLED_WAIT: Duration = Duration::from_secs(10);
const MAX_THROTTLED_WAIT: Duration = Duration::from_secs(60);
/// A watch ends by itself after this time, in seconds: below the 240 s after which common load
/// balancers cut in silence.
const WATCH_TIMEOUT: u32 = 225;
/// A watch that ends sooner, without an event, did not work, as for client-go ("very short watch").
const MIN_WATCH: Duration = Duration::from_secs(1);

/// Applies what a watch shows.
pub trait ChangeHandler<V>: Send {
    /// Names the objects in logs.
    fn resource(&self) -> &'static str;

    /// A list is about to be requested; [`Change::Listed`] is its result.
    fn list_begins(&mut self) {}

    /// A list has failed, since the API server does not serve the kind.
    fn no_such_kind(&mut self) {}

    fn handle(&mut self, change: Change<V>) -> impl Future<Output = ()> + Send;

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
    selected: ListParams,
    prune: impl FnMut(K) -> Option<V>,
    handler: impl ChangeHandler<V>,
) where
    K: Resource + Clone + DeserializeOwned,
{
    let mut reflector = Reflector {
        api,
        selected,
        prune,
        handler,
        version: None,
        broken_since: None,
        backoff: backoff(),
    };
    reflector.run().await;
}

struct Reflector<K, P, H> {
    api: Api<K>,
    selected: ListParams,
    prune: P,
    handler: H,
    /// Version that the next watch continues from; `None` if a list comes first.
    version: Option<String>,
    /// Start of the current break, of which only the first error is logged; a list alone does not
    /// end it.
    broken_since: Option<Instant>,
    backoff: Backoff,
}

impl ReadError {
    fn is_missing_kind(&self) -> bool {
        matches!(self, Self::Api(error) if ApiFailure::from(error) == ApiFailure::NotFound)
    }

    /// The wait before a watch can go on where the last one ended, since the API server was there
    /// all the time; `None` after any other error.
    fn resumes_after(&self) -> Option<Duration> {
        match self {
            Self::VeryShort => Some(Duration::ZERO),
            Self::Api(error) => match ApiFailure::from(error) {
                ApiFailure::Throttled(asked) => {
                    Some(asked.unwrap_or(THROTTLED_WAIT).min(MAX_THROTTLED_WAIT))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl<K, V, P, H> Reflector<K, P, H>
where
    K: Resource + Clone + DeserializeOwned,
    P: FnMut(K) -> Option<V>,
    H: ChangeHandler<V>,
{
    async fn run(&mut self) {
        loop {
            let Err(error) = self.list_and_watch().await else {
                continue;
            };
            self.log(&error);
            if self.version.is_none() && error.is_missing_kind() {
                self.handler.no_such_kind();
            }
            self.handler.handle(Change::Lost).await;
            let wait = error.resumes_after();
            if wait.is_none() {
                self.version = None;
            }
            sleep(self.backoff.wait().max(wait.unwrap_or_default())).await;
        }
    }

    /// Follows one watch, after a list if it cannot go on without, until it ends or breaks or a
    /// re-list is requested.
    async fn list_and_watch(&mut self) -> Result<(), ReadError> {
        let version = match self.version.clone() {
            Some(version) => version,
            None => self.list().await?,
        };
        let params = WatchParams {
            label_selector: self.selected.label_selector.clone(),
            field_selector: self.selected.field_selector.clone(),
            timeout: Some(WATCH_TIMEOUT),
            ..WatchParams::default()
        };
        let request = Request::new(self.api.resource_url()).watch(&params, &version);
        let request = request.map_err(Error::BuildRequest)?;
        let client = self.api.clone().into_client();
        let events = client.request_events(request).await?;
        let opened = Instant::now();
        let end = self.follow(pin!(events), opened).await;
        // Without this, a list that works and a watch that does not would end in listing all the
        // time.
        if opened.elapsed() > MAX_RELIST_WAIT {
            self.backoff = backoff();
        }
        end
    }

    /// Lists all pages; the version from which a watch goes on.
    async fn list(&mut self) -> Result<String, ReadError> {
        self.handler.list_begins();
        let (api, selected) = (self.api.clone(), self.selected.clone());
        let mut listed = Listed::new();
        let keep = |object| self.keep(object, &mut listed);
        let version = objects::list(&api, selected, keep).await?;
        self.handler.handle(Change::Listed(listed)).await;
        Ok(self.version.insert(version).clone())
    }

    /// Adds an object of a list to those that are kept.
    fn keep(&mut self, object: Readable<K>, listed: &mut Listed<V>) {
        let key = object.key();
        if let Some(kept) = self.read(object).transpose() {
            let names = listed.entry(key.namespace).or_default();
            names.insert(key.name, kept.ok());
        }
    }

    /// Prunes an object. Logs and counts one that cannot be read.
    fn read(&mut self, Readable(object): Readable<K>) -> Result<Option<V>, ()> {
        let Self { prune, handler, .. } = self;
        object.map(prune).map_err(|unreadable| {
            tracing::warn!(
                what = handler.resource(),
                namespace = unreadable.metadata.namespace,
                name = unreadable.metadata.name,
                error = unreadable.error,
                "object cannot be understood, what was known of it stays"
            );
            handler.unreadable();
        })
    }

    async fn follow(
        &mut self,
        mut events: Pin<&mut impl Stream<Item = kube::Result<WatchEvent<Readable<K>>>>>,
        opened: Instant,
    ) -> Result<(), ReadError> {
        let mut works = false;
        loop {
            let change = tokio::select! {
                biased;
                () = self.handler.relist_requested() => {
                    self.version = None;
                    self.handler.handle(Change::Ended).await;
                    return Ok(());
                }
                event = events.try_next() => match event? {
                    Some(event) => Some(self.change(event)?),
                    None if works => {
                        self.handler.handle(Change::Ended).await;
                        sleep_until(opened + MIN_WATCH).await;
                        return Ok(());
                    }
                    None => return Err(ReadError::VeryShort),
                },
                () = sleep_until(opened + MIN_WATCH), if !works => None,
            };
            // Any event shows it, and so does time.
            if !works {
                works = true;
                self.works().await;
            }
            if let Some((change, version)) = change {
                if let Some(change) = change {
                    self.handler.handle(change).await;
                }
                self.version = Some(version);
            }
        }
    }

    /// The change of an event, if it is one, and the version that it leads to.
    fn change(
        &mut self,
        event: WatchEvent<Readable<K>>,
    ) -> Result<(Option<Change<V>>, String), ReadError> {
        let (change, version) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let (key, version) = (object.key(), object.version());
                let change = self.read(object).map(|kept| match kept {
                    Some(value) => Change::Applied(key, value),
                    None => Change::Gone(key),
                });
                (change.ok(), version)
            }
            WatchEvent::Deleted(object) => {
                let gone = Change::Gone(object.key());
                (Some(gone), object.version())
            }
            WatchEvent::Bookmark(bookmark) => (None, Some(bookmark.metadata.resource_version)),
            WatchEvent::Error(status) => return Err(Error::Api(status).into()),
        };
        Ok((change, known_version(version)?))
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
        self.handler.handle(Change::Watched).await;
    }

    fn log(&mut self, error: &ReadError) {
        if self.broken_since.is_some() {
            return;
        }
        self.broken_since = Some(Instant::now());
        let (what, error) = (self.handler.resource(), with_causes(error));
        if self.version.is_some() {
            tracing::warn!(what, error, "watch broke, it is restarted");
        } else {
            tracing::warn!(what, error, "cannot be listed, trying again");
        }
    }
}

/// The waits before a watch is restarted: half of the limit, which jitter may double.
fn backoff() -> Backoff {
    Backoff::new(Duration::from_millis(100), MAX_RELIST_WAIT / 2)
}

#[cfg(test)]
mod tests;
