//! Stories of lists and watches: what is asked, what is answered and what is observed, a line for
//! each request:
//!
//! ```text
//! 3s list next = a1 b2 >more -> listed a1 b2
//! ```
//!
//! A line begins with the time since the request before, from 3 s on: shorter ones are random. A
//! list has objects of one letter and their UID (`b` has none and so is of no interest, `c?` cannot
//! be read) and may go on (`>`). A watch has events: `+` added,
//! `~` changed, `-` deleted, `*9` a bookmark of version 9, `!410` an error; `20s` is a pause, and
//! `cut` a connection that ends. `404` is a status, and so is `429 7` with the seconds to wait;
//! `text:` is all that is sent. The last request has no answer.

use std::future::pending;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, service_fn};

use super::*;
use crate::objects::{MAX_LISTED, MAX_PAGES};

type Answer = Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, Error>>>>;

/// Writes down what is observed behind the last request.
struct Narrator(Arc<Mutex<Vec<String>>>);

impl Narrator {
    fn tell(&mut self, what: &str) {
        let mut told = self.0.lock();
        let line = told.last_mut().expect("a request");
        let arrow = if line.contains("->") { "" } else { " ->" };
        *line += &format!("{arrow} {what}");
    }
}

impl ChangeHandler<String> for Narrator {
    fn resource(&self) -> &'static str {
        "leases"
    }

    fn no_such_kind(&mut self) {
        self.tell("no kind");
    }

    async fn handle(&mut self, change: Change<String>) {
        self.tell(&match change {
            Change::Listed(mut listed) => {
                let known = listed.remove("n").unwrap_or_default().into_iter();
                let shown = known.map(|(name, uid)| format!(" {name}{}", uid.unwrap_or_default()));
                format!("listed{}", shown.collect::<String>())
            }
            Change::Applied(key, uid) => format!("+{}{uid}", key.name),
            Change::Gone(key) => format!("-{}", key.name),
            Change::Watched => "watched".to_owned(),
            Change::Ended => "ended".to_owned(),
            Change::Lost => "lost".to_owned(),
        });
    }

    fn unreadable(&mut self) {
        self.tell("unreadable");
    }
}

/// Fails unless the story is told so. Returns how long it took.
async fn check(story: &str) -> Duration {
    let lines = story.trim().lines();
    let lines: Vec<_> = lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let (begin, end) = (Instant::now(), CancellationToken::new());
    let told = Arc::<Mutex<Vec<String>>>::default();
    let narrator = Narrator(Arc::clone(&told));
    let (script, log, over) = (lines.clone(), Arc::clone(&told), end.clone());
    let mut before = begin;
    let service = service_fn(move |request: Request<Body>| {
        let waited = std::mem::replace(&mut before, Instant::now()).elapsed();
        let asked = asked(&request);
        let mut log = log.lock();
        let mut line = match waited.as_secs() {
            ..3 => asked.clone(),
            seconds => format!("{seconds}s {asked}"),
        };
        let next = script
            .get(log.len())
            .and_then(|line| line.split_once(" = "));
        let words = next.map(|(_, rest)| rest.split(" ->").next().unwrap_or_default());
        match words {
            Some(words) => line += &format!(" = {words}"),
            None => over.cancel(),
        }
        log.push(line);
        let answer = words.map(|words| answer(&asked, words));
        async move {
            match answer {
                Some(answer) => answer,
                None => pending().await,
            }
        }
    });
    let api: Api<Lease> = Api::all(Client::new(service, "default"));
    let uid = |lease: Lease| lease.metadata.uid;
    let reflect = reflect(api, ListParams::default(), uid, narrator);
    end.run_until_cancelled(reflect).await;
    assert_eq!(told.lock().join("\n"), lines.join("\n"));
    begin.elapsed()
}

fn asked(request: &Request<Body>) -> String {
    let query = request.uri().query().unwrap_or_default();
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name));
    if let Some(version) = value("resourceVersion=") {
        let sent = query.contains("watch=true&timeoutSeconds=225&allowWatchBookmarks=true");
        assert!(sent, "{query}");
        format!("watch {version}")
    } else {
        format!("list {}", value("continue=").unwrap_or_default())
            .trim_end()
            .to_owned()
    }
}

fn answer(asked: &str, words: &str) -> Result<Answer, BoxError> {
    let mut code = 200;
    let is_pause = |word: &&str| pause(word).is_some();
    let each = words.split(' ').filter(|word| *word != "nothing");
    let pieces: Vec<String> = if words == "closed" {
        return Err(words.into());
    } else if let Some(text) = words.strip_prefix("text: ") {
        vec![text.to_owned()]
    } else if let Some(Ok(number)) = words.split(' ').next().map(str::parse) {
        code = number;
        vec![status(words)]
    } else if asked.starts_with("watch") {
        each.map(event).collect()
    } else {
        let (pauses, page): (Vec<&str>, Vec<&str>) = each.partition(is_pause);
        pauses
            .into_iter()
            .map(str::to_owned)
            .chain([list(page)])
            .collect()
    };
    let frames = stream::iter(pieces).then(|piece| async move {
        match pause(&piece) {
            Some(pause) => sleep(pause).await,
            None if piece == "cut" => return Err(ErrorKind::UnexpectedEof.into()),
            None => return Ok(Frame::data(piece.into())),
        }
        Ok(Frame::data(Bytes::new()))
    });
    let body = StreamBody::new(frames.boxed());
    Ok(Response::builder().status(code).body(body)?)
}

fn pause(word: &str) -> Option<Duration> {
    word.strip_suffix('s')?
        .parse()
        .ok()
        .map(Duration::from_secs)
}

fn status(words: &str) -> String {
    let (code, wait) = words.split_once(' ').unwrap_or((words, "0"));
    format!(
        r#"{{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "No", "code": {code}, "details": {{"retryAfterSeconds": {wait}}}}}"#
    )
}

fn list(mut words: Vec<&str>) -> String {
    let next = words.pop_if(|word| word.starts_with('>')).unwrap_or(">");
    let items = words.into_iter().map(object).collect::<Vec<_>>().join(",");
    format!(
        r#"{{"kind": "LeaseList", "metadata": {{"resourceVersion": "1", "continue": "{}"}}, "items": [{items}]}}"#,
        &next[1..]
    )
}

fn object(word: &str) -> String {
    let (name, uid) = word.split_at(1);
    let content = match (name, uid) {
        (_, "?") => r#""spec": 8"#.to_owned(),
        _ => r#""spec": {}"#.to_owned(),
    };
    let uid = format!(r#", "uid": "{uid}""#).replace(r#", "uid": """#, "");
    format!(
        r#"{{{content}, "metadata": {{"namespace": "n", "name": "{name}", "resourceVersion": "2"{uid}}}}}"#
    )
}

fn event(word: &str) -> String {
    let (kind, rest) = word.split_at(1);
    let (kind, object) = match kind {
        "+" => ("ADDED", object(rest)),
        "~" => ("MODIFIED", object(rest)),
        "-" => ("DELETED", object(rest)),
        "!" => ("ERROR", status(rest)),
        "*" => (
            "BOOKMARK",
            format!(
                r#"{{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {{"resourceVersion": "{rest}"}}}}"#
            ),
        ),
        _ => return word.to_owned(),
    };
    format!(r#"{{"type": "{kind}", "object": {object}}}"#) + "\n"
}

#[tokio::test(start_paused = true)]
async fn a_list_is_forwarded_as_a_whole_at_its_end() {
    for story in [
        "list      = a1 b >next
         list next = c3         -> listed a1 c3
         watch 1",
        // One that broke off leaves nothing behind.
        "list      = a1 b c? >next -> unreadable
         list next = 500           -> lost
         list      = a1 c?         -> unreadable listed a1 c
         watch 1",
        // It has as long as an API server takes for it (--request-timeout).
        "list     = 60s a1 -> listed a1
         60s watch 1 = 404 -> lost
         list     = 66s a1 -> lost
         65s list = closed -> lost
         list",
    ] {
        check(story).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_none_or_has_no_end_is_given_up() {
    let many = "a1 ".repeat(MAX_LISTED + 1);
    for wrong in [
        "a1 >next",
        "text: {\"kind\": \"Status\"}",
        "text: {\"metadata\": {\"resourceVersion\": \"1\"}}",
        "text: {\"metadata\": {\"resourceVersion\": \"1\"}, \"items\": [",
        many.trim(),
    ] {
        let story = format!(
            "list = a1 >next\nlist next = {wrong} -> lost\nlist = a1 -> listed a1\nwatch 1"
        );
        check(&story).await;
    }
    let pages = (2..=MAX_PAGES).map(|page| format!("list {page} = >{}\n", page + 1));
    let story = format!("list = >2\n{}", pages.collect::<String>());
    check(&format!("{} -> lost\nlist", story.trim())).await;
    let story = "list = >x\nlist x = >x -> lost\n".repeat(5);
    let took = check(&format!("{story}list")).await;
    assert!(
        took >= Duration::from_millis(100 + 200 + 400 + 800 + 1000),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_missing() {
    let story = "
        list    = 404 -> no kind lost
        list    = 500 -> lost
        list    = a1  -> listed a1
        watch 1 = 404 -> lost
        list";
    check(story).await;
}

#[tokio::test(start_paused = true)]
async fn changes_are_forwarded_one_by_one_and_in_order() {
    let story = r#"
        list    = b1               -> listed b1
        watch 1 = +a1 ~a2 ~c? ~a -a2 -> watched +a1 +a2 unreadable -a -a ended
        watch 2"#;
    check(story).await;
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_type_comes_last_is_refused() {
    // API servers write it first: it says how the object is to be read.
    let story = r#"
        list    = b1 -> listed b1
        watch 1 = text: {"object": {"metadata": {"name": "a", "uid": "1", "resourceVersion": "3"}}, "type": "ADDED"} -> lost
        list    = a1 -> listed a1
        watch 1"#;
    check(story).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_where_it_ended() {
    // Ordinary ends, one of them in the middle of an event. A bookmark is no change.
    let story = r#"
        list         = a1       -> listed a1
        watch 1      = 226s     -> watched ended
        226s watch 1 = *9 5s    -> watched ended
        5s watch 9   = +b2      -> watched +b2 ended
        watch 2      = ~a3 {"type": -> watched +a3 ended
        watch 2      = *5       -> watched ended
        watch 5      = +b3 cut  -> watched +b3 ended
        watch 2"#;
    let took = check(story).await.as_secs();
    assert_eq!(took, 226 + 5 + 4, "at most one a second");
    // An API server that asks for time gets it.
    let story = "
        list        = a1      -> listed a1
        watch 1     = 429     -> lost
        10s watch 1 = 3s      -> watched ended
        3s watch 1  = 429 7   -> lost
        7s watch 1  = 429     -> lost
        10s watch 1 = 429 3600 -> lost
        60s watch 1 = -a1     -> watched -a ended
        watch 2";
    check(story).await;
    // One that ends as soon as it is open is opened again after growing waits.
    let story = r#"
        list       = a1 -> listed a1
        watch 1    = nothing -> lost
        watch 1    = nothing -> lost
        watch 1    = {"type": -> lost
        watch 1    = nothing -> lost
        watch 1    = nothing -> lost
        watch 1    = 3s -> watched ended
        3s watch 1"#;
    let took = check(story).await;
    assert!(
        took >= Duration::from_millis(100 + 200 + 400 + 800 + 1000 + 3000),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_inside_of_a_watch_restarts_it_with_a_list() {
    for wrong in [
        "!410 -> lost",
        "+a2 !500 -> watched +a2 lost",
        "text: it is no JSON -> lost",
        "410 -> lost",
        "closed -> lost",
    ] {
        let story =
            format!("list = a1 -> listed a1\nwatch 1 = {wrong}\nlist = b2 -> listed b2\nwatch 1");
        check(&story).await;
    }
}
