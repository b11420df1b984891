//! Watches: the changes of a resource from a revision on, as a stream of lines.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

use crate::api::{
    object::Object,
    resource::Resource,
    route::Query,
    selector::Filter,
    shared::Shared,
    status::{self, ApiError, bad_request},
    store::{Change, ListQuery, Store},
};

/// How long a watch lives that names no time; a real server picks 30 to 60 minutes.
const DEFAULT_LIFE: Duration = Duration::from_secs(30 * 60);

struct Watching {
    store: Store,
    resource: Arc<Resource>,
    filter: Filter,
    seen: u64,
    /// Lines that are sent next.
    ready: Vec<u8>,
    revisions: watch::Receiver<u64>,
    breaks: watch::Receiver<u64>,
    end: Instant,
    bookmarks: Interval,
    allows_bookmarks: bool,
    over: bool,
}

/// Opens a watch of what a list is about; each item is one or more whole lines.
pub(crate) fn watch(
    shared: &Shared,
    resource: &Arc<Resource>,
    query: &Query,
    list: ListQuery,
) -> Result<impl Stream<Item = Bytes> + Send + use<>, ApiError> {
    let (revisions, breaks) = shared.store.subscribe();
    let life = query
        .get("timeoutSeconds")
        .parse()
        .map_or(DEFAULT_LIFE, Duration::from_secs);
    let (now, interval) = (Instant::now(), shared.options.bookmark_interval);
    let mut bookmarks = interval_at(now + interval, interval);
    bookmarks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watching = Watching {
        store: shared.store.clone(),
        resource: resource.clone(),
        filter: list.filter,
        seen: 0,
        ready: Vec::new(),
        revisions,
        breaks,
        end: now + life,
        bookmarks,
        allows_bookmarks: query.flag("allowWatchBookmarks"),
        over: false,
    };
    match list.resource_version.as_str() {
        "" | "0" => watching.begin(),
        version => {
            let refuse = || bad_request(format!("resourceVersion {version:?} is no number"));
            watching.seen = version.parse().map_err(|_| refuse())?;
        }
    }
    Ok(stream::unfold(watching, |mut watching| async move {
        watching.next().await.map(|bytes| (bytes, watching))
    }))
}

impl Watching {
    /// What there is, as additions.
    fn begin(&mut self) {
        let (revision, objects) = self.store.matching(&self.resource, &self.filter);
        self.seen = revision;
        for object in objects {
            self.tell("ADDED", &object);
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        while self.ready.is_empty() {
            if self.over {
                return None;
            }
            self.revisions.mark_unchanged();
            match self.store.changes(&self.resource, self.seen) {
                Err(error) => {
                    self.say(&json!({"type": "ERROR", "object": status::body(&error)}));
                    self.over = true;
                }
                Ok((revision, changes)) => {
                    changes.iter().for_each(|change| self.see(change));
                    self.seen = revision;
                }
            }
            if self.ready.is_empty() {
                self.wait().await;
            }
        }
        Some(std::mem::take(&mut self.ready).into())
    }

    async fn wait(&mut self) {
        tokio::select! {
            // The end comes before a bookmark that is due with it, and no stream of writes may hold
            // up either.
            biased;
            _ = self.breaks.changed() => self.over = true,
            () = sleep_until(self.end) => self.over = true,
            _ = self.bookmarks.tick(), if self.allows_bookmarks => self.bookmark(),
            changed = self.revisions.changed() => self.over = changed.is_err(),
        }
    }

    /// A change as those see it who know only what matches: it may make an object appear or vanish.
    fn see(&mut self, change: &Change) {
        let matched = change
            .before
            .as_ref()
            .is_some_and(|before| self.filter.matches(&before.value));
        let matches = !change.deleted && self.filter.matches(&change.after.value);
        match (matched, matches) {
            (false, true) => self.tell("ADDED", &change.after),
            (true, true) => self.tell("MODIFIED", &change.after),
            (true, false) => self.tell("DELETED", &change.after),
            (false, false) => {}
        }
    }

    fn tell(&mut self, kind: &str, object: &Object) {
        self.ready
            .extend_from_slice(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
        object.write_json(&mut self.ready);
        self.ready.extend_from_slice(b"}\n");
    }

    fn bookmark(&mut self) {
        let metadata = json!({"resourceVersion": self.seen.to_string(), "creationTimestamp": null});
        let Resource { kind, .. } = &*self.resource;
        let object =
            json!({"kind": kind, "apiVersion": self.resource.api_version(), "metadata": metadata});
        self.say(&json!({"type": "BOOKMARK", "object": object}));
    }

    fn say(&mut self, value: &Value) {
        self.ready
            .extend_from_slice(format!("{value}\n").as_bytes());
    }
}
