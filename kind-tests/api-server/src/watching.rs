//! Watches: the changes of a resource from a revision on, as a stream of lines.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

use crate::{
    resource::Resource,
    route::IncomingRequest,
    selector::Filter,
    shared::ServerState,
    status,
    store::{Store, StoredChange},
};

/// How long a watch lives that names no time; a real server picks 30 to 60 minutes.
const DEFAULT_LIFE: Duration = Duration::from_secs(30 * 60);

struct OpenWatch {
    store: Store,
    resource: Arc<Resource>,
    filter: Filter,
    seen: u64,
    /// How often all watches had been broken when it began.
    breaks: u64,
    end: Instant,
    bookmarks: Interval,
    allows_bookmarks: bool,
    is_over: bool,
}

/// Opens a watch of what matches, from the version on that the request names; each item is one or
/// more whole lines.
pub(crate) fn watch(
    shared: &ServerState,
    resource: &Arc<Resource>,
    request: &IncomingRequest,
    filter: Filter,
) -> impl Stream<Item = Bytes> + use<> {
    let life = request.parameter("timeoutSeconds").parse();
    let (now, interval) = (Instant::now(), shared.options.bookmark_interval);
    let mut bookmarks = interval_at(now + interval, interval);
    bookmarks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watch = OpenWatch {
        store: shared.store.clone(),
        resource: resource.clone(),
        filter,
        seen: request.parameter("resourceVersion").parse().unwrap_or(0),
        breaks: shared.store.breaks().get(),
        end: now + life.map_or(DEFAULT_LIFE, Duration::from_secs),
        bookmarks,
        allows_bookmarks: request.flag("allowWatchBookmarks"),
        is_over: false,
    };
    stream::unfold(watch, OpenWatch::next)
}

impl OpenWatch {
    async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.is_over {
            let written = self.store.revision();
            let lines: String = match self.store.changes(&self.resource, self.seen) {
                Err(error) => {
                    self.is_over = true;
                    line("ERROR", &status::body(&error))
                }
                Ok((revision, changes)) => {
                    self.seen = revision;
                    let events = changes.iter().filter_map(|change| self.event(change));
                    events.collect()
                }
            };
            if !lines.is_empty() {
                return Some((lines.into(), self));
            }
            tokio::select! {
                // The end comes before a bookmark that is due with it, and no stream of writes may hold
                // up either.
                biased;
                () = self.store.breaks().changed(self.breaks) => break,
                () = sleep_until(self.end) => break,
                _ = self.bookmarks.tick(), if self.allows_bookmarks => {
                    let Resource { api_version, kind, .. } = &*self.resource;
                    let object = json!({"kind": kind, "apiVersion": api_version,
                        "metadata": {"resourceVersion": self.seen.to_string()}});
                    return Some((line("BOOKMARK", &object).into(), self));
                }
                () = self.store.changed(written) => {}
            }
        }
        None
    }

    /// A change as those see it who know only what matches: it may make an object appear or vanish.
    fn event(&self, change: &StoredChange) -> Option<String> {
        let StoredChange { before, after, .. } = change;
        let before = before.as_deref();
        let before = before.filter(|before| self.filter.matches(before));
        match (before, !change.deleted && self.filter.matches(after)) {
            (None, true) => Some(line("ADDED", after)),
            (Some(_), true) => Some(line("MODIFIED", after)),
            (Some(before), false) => {
                // It is shown as it was last seen.
                let mut last = before.clone();
                last["metadata"]["resourceVersion"] = json!(change.revision.to_string());
                Some(line("DELETED", &last))
            }
            (None, false) => None,
        }
    }
}

fn line(event: &str, object: &Value) -> String {
    format!("{{\"type\":\"{event}\",\"object\":{object}}}\n")
}
