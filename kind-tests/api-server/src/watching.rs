//! Watches: the changes of a resource from a revision on, as a stream of lines.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use serde_json::{Value, json};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

use crate::{
    object::StoredObject,
    resource::Resource,
    route::Query,
    selector::Filter,
    shared::ServerState,
    status,
    store::{ListQuery, Store, StoredChange},
};

/// How long a watch lives that names no time; a real server picks 30 to 60 minutes.
const DEFAULT_LIFE: Duration = Duration::from_secs(30 * 60);

struct OpenWatch {
    store: Store,
    resource: Arc<Resource>,
    filter: Filter,
    seen: u64,
    /// Lines that are sent next.
    ready: Vec<u8>,
    /// How often all watches had been broken when it began.
    breaks: u64,
    end: Instant,
    bookmarks: Interval,
    allows_bookmarks: bool,
    is_over: bool,
}

/// Opens a watch of what a list is about, from the version on that it names; each item is one or more
/// whole lines.
pub(crate) fn watch(
    shared: &ServerState,
    resource: &Arc<Resource>,
    query: &Query,
    list: ListQuery,
) -> impl Stream<Item = Bytes> + use<> {
    let breaks = shared.store.breaks().get();
    let life = query.get("timeoutSeconds").parse().map(Duration::from_secs);
    let (now, interval) = (Instant::now(), shared.options.bookmark_interval);
    let mut bookmarks = interval_at(now + interval, interval);
    bookmarks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watch = OpenWatch {
        store: shared.store.clone(),
        resource: resource.clone(),
        filter: list.filter,
        seen: query.get("resourceVersion").parse().unwrap_or_default(),
        ready: Vec::new(),
        breaks,
        end: now + life.unwrap_or(DEFAULT_LIFE),
        bookmarks,
        allows_bookmarks: query.flag("allowWatchBookmarks"),
        is_over: false,
    };
    let next = async |mut watch: OpenWatch| watch.next().await.map(|lines| (lines, watch));
    stream::unfold(watch, next)
}

impl OpenWatch {
    async fn next(&mut self) -> Option<Bytes> {
        while self.ready.is_empty() {
            if self.is_over {
                return None;
            }
            let changes = self.store.revisions().get();
            match self.store.changes(&self.resource, self.seen) {
                Err(error) => {
                    self.send(&json!({"type": "ERROR", "object": status::body(&error)}));
                    self.is_over = true;
                }
                Ok((revision, changes)) => {
                    changes.iter().for_each(|change| self.observe(change));
                    self.seen = revision;
                }
            }
            if self.ready.is_empty() {
                self.wait(changes).await;
            }
        }
        Some(std::mem::take(&mut self.ready).into())
    }

    async fn wait(&mut self, changes: u64) {
        tokio::select! {
            // The end comes before a bookmark that is due with it, and no stream of writes may hold
            // up either.
            biased;
            () = self.store.breaks().changed(self.breaks) => self.is_over = true,
            () = sleep_until(self.end) => self.is_over = true,
            _ = self.bookmarks.tick(), if self.allows_bookmarks => self.bookmark(),
            () = self.store.revisions().changed(changes) => {}
        }
    }

    /// A change as those see it who know only what matches: it may make an object appear or vanish.
    fn observe(&mut self, change: &StoredChange) {
        let matches = |object: &Arc<StoredObject>| self.filter.matches(&object.value);
        let event = match (
            change.before.as_ref().is_some_and(matches),
            !change.deleted && matches(&change.after),
        ) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return,
        };
        match &change.before {
            // It is shown as it was last seen.
            Some(before) if event == "DELETED" && !change.deleted => {
                let mut value = before.value.clone();
                value["metadata"]["resourceVersion"] = json!(change.revision.to_string());
                let resource = before.resource.clone();
                self.send_event(event, &StoredObject::new(resource, change.revision, value));
            }
            _ => self.send_event(event, &change.after),
        }
    }

    fn send_event(&mut self, event: &str, object: &StoredObject) {
        let head = format!(r#"{{"type":"{event}","object":"#);
        self.ready
            .extend([head.as_bytes(), &object.json(), b"}\n"].concat());
    }

    fn bookmark(&mut self) {
        let object = json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version(),
            "metadata": {"resourceVersion": self.seen.to_string()}});
        self.send(&json!({"type": "BOOKMARK", "object": object}));
    }

    fn send(&mut self, value: &Value) {
        self.ready.extend(format!("{value}\n").into_bytes());
    }
}
