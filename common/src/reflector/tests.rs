use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

/// Answers requests one after the other, and those that follow not at all.
fn client(answers: Vec<(u16, String)>) -> Client {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let answer = move |_: Request<Body>| {
        let answer = answers.lock().pop_front();
        async move {
            let Some((code, body)) = answer else {
                return std::future::pending().await;
            };
            let body = Body::from(body.into_bytes());
            Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
        }
    };
    Client::new(service_fn(answer), "default")
}

/// Keeps in words what is observed: what was listed, `+name uid`, `-name`, and how the watch is.
#[derive(Default)]
struct RecordedChanges(Vec<String>);

impl ChangeHandler<String> for &mut RecordedChanges {
    fn resource(&self) -> &'static str {
        "configmaps"
    }

    async fn handle(&mut self, change: Change<String>) {
        self.0.push(match change {
            Change::Listed(mut listed) => {
                let names = listed.remove("n").unwrap_or_default().into_iter();
                let known =
                    names.map(|(name, uid)| format!(" {name}{}", uid.as_deref().unwrap_or("?")));
                let mut known: Vec<String> = known.collect();
                known.sort();
                format!("listed{}", known.concat())
            }
            Change::Applied(key, uid) => format!("+{}{uid}", key.name),
            Change::Gone(key) => format!("-{}", key.name),
            Change::Watched => "watched".to_owned(),
            Change::Ended => "ended".to_owned(),
            Change::Lost => "lost".to_owned(),
        });
    }

    fn unreadable(&mut self) {
        self.0.push("unreadable".to_owned());
    }
}

/// Fails unless this is observed with these answers, which are a list first. Of a ConfigMap its UID
/// is kept; those without one are of no interest.
async fn check(answers: Vec<(u16, String)>, expected: &str) {
    let api: Api<ConfigMap> = Api::all(client(answers));
    let mut observed = RecordedChanges::default();
    let prune = |object: ConfigMap| object.metadata.uid;
    let reflect = reflect(api, Config::default(), prune, &mut observed);
    assert!(timeout(LIST_TIMEOUT / 2, reflect).await.is_err());
    assert_eq!(observed.0.join(", "), expected);
}

/// Objects of these names and UIDs, as `a1 b2`; `a` has no UID, and `a?` cannot be read.
fn objects(names: &str) -> Vec<Value> {
    let object = |word: &str| {
        let (name, uid) = word.split_at(1);
        let metadata = json!({"namespace": "n", "name": name, "uid": (!uid.is_empty()).then_some(uid), "resourceVersion": "2"});
        match uid {
            "?" => json!({"metadata": metadata, "data": 8}),
            _ => json!({"metadata": metadata}),
        }
    };
    names.split_whitespace().map(object).collect()
}

fn list(names: &str) -> (u16, String) {
    page(names, "")
}

fn page(names: &str, next: &str) -> (u16, String) {
    let metadata = json!({"resourceVersion": "1", "continue": next});
    let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": objects(names)});
    (200, list.to_string())
}

/// A watch with an event a word, as `ADDED:a1`.
fn watch(events: &str) -> (u16, String) {
    let event = |word: &str| {
        let (kind, name) = word.split_once(':').expect("a type");
        format!("{}\n", json!({"type": kind, "object": objects(name)[0]}))
    };
    (200, events.split_whitespace().map(event).collect())
}

fn failure(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "No", "code": code})
}

#[tokio::test(start_paused = true)]
async fn a_list_is_forwarded_as_a_whole_at_its_end() {
    check(vec![page("a1 b", "next"), list("c3")], "listed a1 c3").await;
    // One that broke off leaves nothing behind.
    let broken = vec![
        page("a1 b?", "next"),
        (500, failure(500).to_string()),
        list("c3"),
    ];
    check(broken, "unreadable, lost, listed c3").await;
    let expired = (
        200,
        json!({"type": "ERROR", "object": failure(410)}).to_string() + "\n",
    );
    check(
        vec![list("a1 b2"), expired, list("b2")],
        "listed a1 b2, watched, lost, listed b2",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn changes_are_forwarded_one_by_one_and_in_order() {
    let events = watch("ADDED:a1 MODIFIED:a2 MODIFIED:a DELETED:a2");
    check(
        vec![list(""), events],
        "listed, watched, +a1, +a2, -a, -a, ended",
    )
    .await;
    let object_first = format!(r#"{{"object": {}, "type": "ADDED"}}"#, objects("a1")[0]) + "\n";
    check(
        vec![list(""), (200, object_first)],
        "listed, watched, +a1, ended",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_is_read_however_deep_that_is_nested_which_nobody_reads() {
    let answers = vec![list("a1 b1"), watch("MODIFIED:a2 MODIFIED:b2 DELETED:a2")];
    let (begin, end) = (r#"{"a":["#, "]}");
    let nested = [
        r#"{"spec":"#,
        &begin.repeat(100_000),
        &end.repeat(100_000),
        r#","metadata":{"name":"a""#,
    ]
    .concat();
    let nest =
        |(code, body): (u16, String)| (code, body.replace(r#"{"metadata":{"name":"a""#, &nested));
    let answers = answers.into_iter().map(nest).collect();
    check(answers, "listed a1 b1, watched, +a2, +b2, -a, ended").await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_cut_off_is_none_and_one_that_is_no_event_breaks_the_watch() {
    let cut_off = (200, r#"{"type": "ADDED", "object": {"metadata""#.to_owned());
    let answers = vec![
        list(""),
        cut_off,
        (200, "it is no JSON".to_owned()),
        list("a1"),
    ];
    check(answers, "listed, watched, lost, lost, listed a1").await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_no_list_or_goes_on_with_itself_is_given_up() {
    for wrong in [
        page("a1", "next").1,
        json!({"kind": "Status"}).to_string(),
        json!({"metadata": {"resourceVersion": "1"}}).to_string(),
        list("a1").1.replace("]", ""),
    ] {
        check(
            vec![page("a1", "next"), (200, wrong), list("b2")],
            "lost, listed b2",
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_without_an_end_is_given_up() {
    let pages = (0..MAX_PAGES).map(|number| page("a1", &number.to_string()));
    check(pages.chain([list("")]).collect(), "lost, listed").await;
    check(
        vec![list(&"a1 ".repeat(MAX_LISTED + 1)), list("")],
        "lost, listed",
    )
    .await;
}
