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

/// Keeps what is observed, and counts what cannot be decoded.
#[derive(Default)]
struct RecordedChanges {
    changes: Vec<Change<String>>,
    unreadable: usize,
}

impl ChangeHandler<String> for &mut RecordedChanges {
    fn resource(&self) -> &'static str {
        "configmaps"
    }

    async fn handle(&mut self, change: Change<String>) {
        self.changes.push(change);
    }

    fn unreadable(&mut self) {
        self.unreadable += 1;
    }
}

/// What is observed with these answers, which are a list first. Of a ConfigMap its UID is kept;
/// those without one are of no interest.
async fn observed(answers: Vec<(u16, String)>) -> RecordedChanges {
    let api: Api<ConfigMap> = Api::all(client(answers));
    let mut observed = RecordedChanges::default();
    let prune = |object: ConfigMap| object.metadata.uid;
    let reflect = reflect(api, Config::default(), prune, &mut observed);
    assert!(timeout(LIST_TIMEOUT / 2, reflect).await.is_err());
    observed
}

fn list(objects: &[Value]) -> (u16, String) {
    page(objects, "")
}

fn page(objects: &[Value], next: &str) -> (u16, String) {
    let metadata = json!({"resourceVersion": "1", "continue": next});
    let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": objects});
    (200, list.to_string())
}

fn watch(events: &[(&str, Value)]) -> (u16, String) {
    let lines = events
        .iter()
        .map(|(kind, object)| format!("{}\n", json!({"type": kind, "object": object})));
    (200, lines.collect())
}

fn failure(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "No", "code": code})
}

fn object(name: &str, uid: &str) -> Value {
    json!({"metadata": {"namespace": "n", "name": name, "uid": uid, "resourceVersion": "2"}})
}

fn of_no_interest(name: &str) -> Value {
    json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": "2"}})
}

fn unreadable(name: &str) -> Value {
    let mut object = object(name, "u");
    object["data"] = json!(8);
    object
}

fn key(name: &str) -> Key {
    Key {
        namespace: "n".to_owned(),
        name: name.to_owned(),
    }
}

fn listed(objects: &[(&str, Option<&str>)]) -> Change<String> {
    let mut listed = Listed::new();
    for (name, uid) in objects {
        let names = listed.entry("n".to_owned()).or_default();
        names.insert((*name).to_owned(), uid.map(str::to_owned));
    }
    Change::Listed(listed)
}

#[tokio::test(start_paused = true)]
async fn a_list_is_forwarded_as_a_whole_at_its_end() {
    let pages = vec![
        page(&[object("a", "1"), of_no_interest("b")], "next"),
        list(&[object("c", "3")]),
    ];
    assert_eq!(
        observed(pages).await.changes,
        [listed(&[("a", Some("1")), ("c", Some("3"))])]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_after_a_restart_has_only_what_is_there_now() {
    let answers = vec![
        list(&[object("a", "1"), object("b", "2")]),
        watch(&[("ERROR", failure(410))]),
        list(&[object("b", "2")]),
    ];
    assert_eq!(
        observed(answers).await.changes,
        [
            listed(&[("a", Some("1")), ("b", Some("2"))]),
            Change::Watched,
            Change::Lost,
            listed(&[("b", Some("2"))])
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_broke_off_leaves_nothing_behind() {
    let answers = vec![
        page(&[object("a", "1"), unreadable("b")], "next"),
        (500, failure(500).to_string()),
        list(&[object("c", "3")]),
    ];
    assert_eq!(
        observed(answers).await.changes,
        [Change::Lost, listed(&[("c", Some("3"))])]
    );
}

#[tokio::test(start_paused = true)]
async fn changes_are_forwarded_one_by_one_and_in_order() {
    let answers = vec![
        list(&[]),
        watch(&[
            ("ADDED", object("a", "1")),
            ("MODIFIED", object("a", "2")),
            ("MODIFIED", of_no_interest("a")),
            ("DELETED", object("a", "2")),
        ]),
    ];
    assert_eq!(
        observed(answers).await.changes,
        [
            listed(&[]),
            Change::Watched,
            Change::Applied(key("a"), "1".to_owned()),
            Change::Applied(key("a"), "2".to_owned()),
            Change::Gone(key("a")),
            Change::Gone(key("a")),
            Change::Ended
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_is_read_however_deep_that_is_nested_which_nobody_reads() {
    let deep = |name: &str, uid: &str| {
        let mut object = object(name, uid);
        object["spec"] = json!("nested");
        object
    };
    let answers = vec![
        list(&[deep("a", "1"), object("b", "1")]),
        watch(&[
            ("MODIFIED", deep("a", "2")),
            ("MODIFIED", object("b", "2")),
            ("DELETED", deep("a", "2")),
        ]),
    ];
    let (begin, end) = (r#"{"a":["#, "]}");
    let nested = [begin.repeat(100_000), end.repeat(100_000)].concat();
    let nest = |(code, body): (u16, String)| (code, body.replace(r#""nested""#, &nested));
    let observed = observed(answers.into_iter().map(nest).collect()).await;
    assert_eq!(
        observed.changes,
        [
            listed(&[("a", Some("1")), ("b", Some("1"))]),
            Change::Watched,
            Change::Applied(key("a"), "2".to_owned()),
            Change::Applied(key("b"), "2".to_owned()),
            Change::Gone(key("a")),
            Change::Ended
        ]
    );
    assert_eq!(observed.unreadable, 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_the_same_whichever_of_its_fields_comes_first() {
    let event = format!(r#"{{"object": {}, "type": "ADDED"}}"#, object("a", "1"));
    let answers = vec![list(&[]), (200, event + "\n")];
    assert_eq!(
        observed(answers).await.changes[2..],
        [Change::Applied(key("a"), "1".to_owned()), Change::Ended]
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_that_was_cut_off_is_none_and_one_that_is_no_event_breaks_the_watch() {
    let answers = vec![
        list(&[]),
        (200, r#"{"type": "ADDED", "object": {"metadata""#.to_owned()),
        (200, "it is no JSON".to_owned()),
        list(&[object("a", "1")]),
    ];
    assert_eq!(
        observed(answers).await.changes,
        [
            listed(&[]),
            Change::Watched,
            Change::Lost,
            Change::Lost,
            listed(&[("a", Some("1"))])
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_no_list_or_goes_on_with_itself_is_given_up() {
    for wrong in [
        page(&[object("a", "1")], "next"),
        (200, json!({"kind": "Status"}).to_string()),
        (
            200,
            json!({"metadata": {"resourceVersion": "1"}}).to_string(),
        ),
        (200, list(&[object("a", "1")]).1.replace("]", "")),
    ] {
        let answers = vec![
            page(&[object("a", "1")], "next"),
            wrong,
            list(&[object("b", "2")]),
        ];
        assert_eq!(
            observed(answers).await.changes,
            [Change::Lost, listed(&[("b", Some("2"))])]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_without_an_end_is_given_up() {
    let pages = (0..=MAX_PAGES).map(|number| page(&[object("a", "1")], &number.to_string()));
    let answers = pages.take(MAX_PAGES).chain([list(&[])]).collect();
    assert_eq!(observed(answers).await.changes, [Change::Lost, listed(&[])]);
    let many = vec![object("a", "1"); MAX_LISTED + 1];
    let answers = vec![list(&many), list(&[])];
    assert_eq!(observed(answers).await.changes, [Change::Lost, listed(&[])]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_understood_changes_nothing() {
    let answers = vec![
        list(&[object("a", "1"), unreadable("b")]),
        watch(&[("MODIFIED", unreadable("a")), ("DELETED", unreadable("a"))]),
    ];
    let observed = observed(answers).await;
    assert_eq!(
        observed.changes,
        [
            listed(&[("a", Some("1")), ("b", None)]),
            Change::Watched,
            Change::Gone(key("a")),
            Change::Ended
        ],
        "gone is gone"
    );
    assert_eq!(observed.unreadable, 2);
}
