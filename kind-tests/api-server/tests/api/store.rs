//! What a test does to the store, as clients see it.

use std::time::Duration;

use api_server::Options;
use serde_json::{Value, json};

use crate::client::{ApiBed, DEADLINE};

fn secret(name: &str, label: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "n", "labels": {"l": label}}})
}

struct Lines {
    response: reqwest::Response,
    rest: Vec<u8>,
}

impl Lines {
    async fn open(bed: &ApiBed, query: &str) -> Self {
        let response = bed
            .request(
                "GET",
                &format!("/api/v1/namespaces/n/secrets?watch=true{query}"),
            )
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        Self {
            response,
            rest: Vec::new(),
        }
    }

    /// The next event; `None` at the end of the watch.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let chunk = tokio::time::timeout(DEADLINE, self.response.chunk())
                .await
                .expect("news in time")
                .unwrap()?;
            self.rest.extend_from_slice(&chunk);
        }
    }

    /// Type and name of the next event.
    async fn shown(&mut self) -> (String, String) {
        let event = self.next().await.expect("one more event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
        )
    }
}

fn event(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_short_history_forgets_old_versions() {
    let bed = ApiBed::with(Options {
        history: 2,
        ..Options::default()
    })
    .await;
    let store = bed.server.store();
    let version = store.revision();
    for name in ["a", "b", "c"] {
        store.create(secret(name, "x")).unwrap();
    }
    let mut lines = Lines::open(&bed, &format!("&resourceVersion={version}")).await;
    assert_eq!(lines.shown().await.0, "ERROR");
    let mut lines = Lines::open(&bed, &format!("&resourceVersion={}", version + 1)).await;
    assert_eq!(lines.shown().await, event("ADDED", "b"));
}

#[tokio::test]
async fn watches_end_when_broken_or_out_of_time() {
    let bed = ApiBed::start().await;
    let mut lines = Lines::open(&bed, "&timeoutSeconds=0").await;
    assert_eq!(lines.next().await, None);
    let mut lines = Lines::open(&bed, "").await;
    bed.server.store().break_watches();
    assert_eq!(lines.next().await, None);
}

#[tokio::test]
async fn only_watches_that_allow_them_get_bookmarks() {
    let bed = ApiBed::with(Options {
        bookmark_interval: Duration::from_millis(1),
        ..Options::default()
    })
    .await;
    let mut lines = Lines::open(&bed, "").await;
    let mut marked = Lines::open(&bed, "&allowWatchBookmarks=true").await;
    assert_eq!(marked.shown().await.0, "BOOKMARK");
    assert_eq!(marked.shown().await.0, "BOOKMARK");
    bed.server.store().create(secret("a", "x")).unwrap();
    assert_eq!(lines.shown().await, event("ADDED", "a"));
}

#[tokio::test]
async fn a_lagging_cache_answers_only_those_who_allow_it() {
    let bed = ApiBed::start().await;
    let store = bed.server.store();
    store.create(secret("a", "x")).unwrap();
    store.freeze_cache();
    store.delete("secrets", "n", "a").unwrap();
    for (query, count) in [("?resourceVersion=0", 1), ("", 0)] {
        let path = format!("/api/v1/namespaces/n/secrets{query}");
        let list = bed.get(&path).await.json();
        assert_eq!(
            list["items"].as_array().map(Vec::len),
            Some(count),
            "{query}"
        );
    }
}
