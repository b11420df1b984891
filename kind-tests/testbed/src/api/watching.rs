//! Watches: the changes of a resource from a revision on, as a stream of lines.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use crate::api::{
    object::{Form, Object, write_json},
    resource::Resource,
    selector::Filter,
    status::ApiError,
    store::{Change, Store},
};

/// How long a watch lives that names no time; a real server picks 30 to 60 minutes.
pub(crate) const DEFAULT_LIFE: Duration = Duration::from_secs(30 * 60);

/// What a watch asks for.
#[derive(Clone, Debug)]
pub(crate) struct WatchQuery {
    pub filter: Filter,
    /// `None`: begin with what there is.
    pub after: Option<u64>,
    /// Whether the end of the initial objects is marked (the streaming form of a list).
    pub mark_initial_end: bool,
    pub bookmarks: Option<Duration>,
    pub life: Duration,
    pub form: Form,
}

struct Watching {
    store: Store,
    resource: Arc<Resource>,
    query: WatchQuery,
    seen: u64,
    ready: VecDeque<Bytes>,
    revisions: watch::Receiver<u64>,
    breaks: watch::Receiver<u64>,
    end: Instant,
    next_bookmark: Option<Instant>,
    over: bool,
}

/// Opens a watch; each item is one or more whole lines.
pub(crate) fn watch(
    store: &Store,
    resource: &Arc<Resource>,
    query: WatchQuery,
) -> Result<impl Stream<Item = Bytes> + Send + use<>, ApiError> {
    let (revisions, breaks) = store.subscribe();
    let now = Instant::now();
    let mut watching = Watching {
        seen: query.after.unwrap_or_default(),
        ready: VecDeque::new(),
        revisions,
        breaks,
        end: now + query.life,
        next_bookmark: query.bookmarks.map(|interval| now + interval),
        over: false,
        store: store.clone(),
        resource: resource.clone(),
        query,
    };
    // The head of the answer goes out with the first bytes, so a watch that begins late must still not wait for news.
    if watching.query.after.is_none() {
        watching.begin()?;
    }
    Ok(stream::unfold(watching, |mut watching| async move { watching.next().await.map(|bytes| (bytes, watching)) }))
}

impl Watching {
    /// What there is, as additions.
    fn begin(&mut self) -> Result<(), ApiError> {
        let (revision, objects) = self.store.matching(&self.resource, &self.query.filter)?;
        self.seen = revision;
        for object in objects {
            self.tell("ADDED", &object);
        }
        if self.query.mark_initial_end {
            self.bookmark(json!({"k8s.io/initial-events-end": "true"}));
        }
        Ok(())
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if !self.ready.is_empty() {
                return Some(self.ready.drain(..).collect::<Vec<_>>().concat().into());
            }
            if self.over {
                return None;
            }
            self.revisions.mark_unchanged();
            match self.store.changes(&self.resource, self.seen) {
                Err(error) => {
                    self.say(&json!({"type": "ERROR", "object": error.body()}));
                    self.over = true;
                    continue;
                }
                Ok((revision, changes)) => {
                    for change in &changes {
                        self.see(change);
                    }
                    self.seen = revision;
                }
            }
            if !self.ready.is_empty() {
                continue;
            }
            let bookmark = self.next_bookmark.unwrap_or(self.end);
            tokio::select! {
                // The end comes before a bookmark that is due with it, and no stream of writes may hold up either.
                biased;
                _ = self.breaks.changed() => self.over = true,
                () = tokio::time::sleep_until(self.end) => self.over = true,
                () = tokio::time::sleep_until(bookmark), if self.next_bookmark.is_some() => {
                    self.next_bookmark = self.query.bookmarks.map(|interval| Instant::now() + interval);
                    self.bookmark(json!({}));
                }
                changed = self.revisions.changed() => self.over = changed.is_err(),
            }
        }
    }

    /// A change as those see it who know only what matches: it may make an object appear or vanish.
    fn see(&mut self, change: &Change) {
        let matched = change.before.as_ref().is_some_and(|before| self.query.filter.matches(&before.value));
        let matches = !change.deleted && self.query.filter.matches(&change.after.value);
        match (matched, matches) {
            (false, true) => self.tell("ADDED", &change.after),
            (true, true) => self.tell("MODIFIED", &change.after),
            (true, false) => self.tell("DELETED", &change.after),
            (false, false) => {}
        }
    }

    fn tell(&mut self, kind: &str, object: &Object) {
        let mut line = Vec::with_capacity(512);
        line.extend_from_slice(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
        object.write_json(&mut line, self.query.form);
        line.extend_from_slice(b"}\n");
        self.ready.push_back(line.into());
    }

    fn bookmark(&mut self, annotations: Value) {
        let (version, kind) = match self.query.form {
            Form::Full => (self.resource.api_version(), self.resource.kind.clone()),
            Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata".to_owned()),
        };
        let mut metadata = json!({"resourceVersion": self.seen.to_string(), "creationTimestamp": null});
        if annotations.as_object().is_some_and(|annotations| !annotations.is_empty()) {
            metadata["annotations"] = annotations;
        }
        self.say(&json!({"type": "BOOKMARK", "object": {"kind": kind, "apiVersion": version, "metadata": metadata}}));
    }

    fn say(&mut self, value: &Value) {
        let mut line = Vec::new();
        write_json(&mut line, value);
        line.push(b'\n');
        self.ready.push_back(line.into());
    }
}
