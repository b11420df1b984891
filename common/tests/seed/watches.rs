//! Watches that receive odd things, or nothing at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api_server::{Fault, MemoryApi, Options, PATIENCE, Record, When};
use chrono::Utc;
use common::logging::{LevelFilter, ZapLayer};
use common::metrics::UnreadableObjects;
use common::view::{Key, View};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;
use tracing_subscriber::layer::SubscriberExt;

use crate::client::{TOKEN, client, dropped_after, server};

const LEASES: &str = "leases.coordination.k8s.io";

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(86_400);

fn answered(record: &Record, verb: &str) -> bool {
    record.verb == verb && record.resource == "secrets" && record.status == Some(200)
}

struct ViewBed {
    server: MemoryApi,
    view: Arc<View<()>>,
    changes: mpsc::Receiver<Key>,
    cancelled: CancellationToken,
    task: JoinHandle<()>,
}

impl ViewBed {
    /// A view of all Secrets, filled with one; `url` leads to the server.
    async fn start(server: MemoryApi, url: &str) -> Self {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a", "name": "one"}});
        server.store().create(secret).unwrap();
        let api: Api<Secret> = Api::all(client(&server.kubeconfig_at(url, TOKEN)).await);
        let (view, cancelled) = (
            View::new("secrets", &UnreadableObjects::default()),
            CancellationToken::new(),
        );
        let (sender, changes) = mpsc::channel(64);
        let keep = |_: Secret| Some(());
        let work = Arc::clone(&view).run(
            api,
            watcher::Config::default(),
            keep,
            Some(sender),
            cancelled.clone(),
        );
        let mut bed = Self {
            server,
            view,
            changes,
            cancelled,
            task: tokio::spawn(work),
        };
        assert_eq!(bed.change().await, "one");
        bed.asked("watch", 1).await;
        bed
    }

    async fn change(&mut self) -> String {
        timeout(PATIENCE, self.changes.recv())
            .await
            .expect("a change")
            .expect("the view runs")
            .name
    }

    fn count(&self, verb: &str) -> usize {
        self.server
            .requests()
            .count(|record| answered(record, verb))
    }

    async fn asked(&self, verb: &str, count: usize) {
        let asked = self.server.requests().wait_for(|records| {
            let found = records
                .iter()
                .filter(|record| answered(record, verb))
                .count();
            (found >= count).then_some(())
        });
        assert!(
            timeout(PATIENCE, asked).await.is_ok(),
            "{count} times {verb}, but there were {}",
            self.count(verb)
        );
    }

    async fn end(self) {
        self.cancelled.cancel();
        timeout(PATIENCE, self.task)
            .await
            .expect("it ends")
            .expect("no panic");
    }
}

#[tokio::test]
async fn what_a_view_has_handed_out_stays_as_it_was_and_is_the_same_until_something_changes() {
    let server = server(Options::default()).await;
    let url = server.url();
    let mut bed = ViewBed::start(server, &url).await;
    let before = bed.view.all_in("a");
    assert!(
        Arc::ptr_eq(&before, &bed.view.all_in("a")),
        "nothing has changed"
    );
    for (namespace, name) in [("b", "other"), ("a", "two")] {
        let metadata = json!({"namespace": namespace, "name": name});
        bed.server
            .store()
            .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
            .unwrap();
        assert_eq!(bed.change().await, name);
        let changed = namespace == "a";
        assert_eq!(
            Arc::ptr_eq(&before, &bed.view.all_in("a")),
            !changed,
            "after a change in {namespace}"
        );
    }
    assert_eq!((before.len(), bed.view.all_in("a").len()), (1, 2));
    bed.server.store().delete("secrets", "a", "one").unwrap();
    assert_eq!(bed.change().await, "one");
    assert_eq!(
        (
            before.contains_key("one"),
            bed.view.all_in("a").contains_key("one")
        ),
        (true, false)
    );
    bed.end().await;
}

#[tokio::test]
async fn a_bookmark_changes_nothing() {
    // Fault 8. What else happens on the server is soon more than it remembers; only bookmarks let a
    // quiet watch go on from there.
    let options = Options {
        history: 8,
        bookmark_interval: Duration::from_millis(20),
        ..Options::default()
    };
    let server = server(options).await;
    let url = server.url();
    let mut bed = ViewBed::start(server, &url).await;
    // A watch of our own that begins now is notified no sooner than the view's.
    let own: Api<Secret> = Api::all(client(&bed.server.kubeconfig(TOKEN)).await);
    let version = bed.server.store().revision().to_string();
    let mut events = own
        .watch(&WatchParams::default(), &version)
        .await
        .unwrap()
        .boxed();
    for round in 0..6 {
        // No more at once than is remembered, or the watches expire while they are open.
        for number in 0..5 {
            let metadata = json!({"namespace": "a", "name": format!("p{round}-{number}")});
            bed.server
                .store()
                .create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}))
                .unwrap();
        }
        for _ in 0..2 {
            let event = timeout(PATIENCE, events.next())
                .await
                .expect("a bookmark")
                .unwrap()
                .unwrap();
            assert!(matches!(event, WatchEvent::Bookmark(_)), "{event:?}");
        }
    }
    drop(events);
    assert!(bed.changes.try_recv().is_err(), "a bookmark is no change");
    let watches = bed.count("watch");
    bed.server.store().break_watches();
    bed.asked("watch", watches + 1).await;
    bed.server.store().delete("secrets", "a", "one").unwrap();
    assert_eq!(bed.change().await, "one");
    assert!(bed.view.all().is_empty());
    assert_eq!(bed.count("list"), 1, "it went on from a bookmark");
    bed.end().await;
}

#[tokio::test]
async fn an_error_inside_of_a_watch_restarts_it() {
    // Fault 9: an ERROR event that says 410, and bytes that are no event.
    let server = server(Options::default()).await;
    let url = server.url();
    let mut bed = ViewBed::start(server, &url).await;
    for round in 2..4 {
        if round == 2 {
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "a", "name": "p"}});
            bed.server.store().create(pod).unwrap();
            bed.server.store().compact();
        } else {
            bed.server
                .faults()
                .add(When::verb("watch", "secrets").once(), Fault::Garbage);
        }
        bed.server.store().break_watches();
        bed.asked("list", round).await;
        assert_eq!(bed.change().await, "one");
        assert!(
            bed.view.is_known() && bed.view.get("a", "one").is_some(),
            "what was known stays known"
        );
        timeout(PATIENCE, bed.view.live())
            .await
            .expect("it works again");
    }
    bed.end().await;
}

/// Passes connections to `target`; those that were open when `frozen` was set stand still for good.
async fn relay(listener: TcpListener, target: std::net::SocketAddr, frozen: Arc<AtomicBool>) {
    let mut connections = JoinSet::new();
    while let Ok((mut one, _)) = listener.accept().await {
        let (frozen, old) = (frozen.clone(), !frozen.load(Ordering::Relaxed));
        connections.spawn(async move {
            let mut other = TcpStream::connect(target).await.expect("the server");
            let (mut up, mut down) = (vec![0; 1 << 14], vec![0; 1 << 14]);
            loop {
                let (count, to_server) = tokio::select! {
                    count = one.read(&mut up) => (count.unwrap_or(0), true),
                    count = other.read(&mut down) => (count.unwrap_or(0), false),
                };
                if old && frozen.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                let done = match (count, to_server) {
                    (0, _) => return,
                    (count, true) => other.write_all(&up[..count]).await,
                    (count, false) => one.write_all(&down[..count]).await,
                };
                if done.is_err() {
                    return;
                }
            }
        });
    }
}

#[tokio::test]
async fn a_watch_that_is_silent_for_four_minutes_is_restarted() {
    // Fault 10
    let server = server(Options {
        bookmark_interval: NEVER,
        ..Options::default()
    })
    .await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let frozen = Arc::new(AtomicBool::new(false));
    let relay = tokio::spawn(relay(listener, server.address(), frozen.clone()));
    let mut bed = ViewBed::start(server, &url).await;
    // What comes through the watch shows that it has begun.
    bed.server
        .store()
        .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a", "name": "two"}}))
        .unwrap();
    assert_eq!(bed.change().await, "two");
    frozen.store(true, Ordering::Relaxed);
    bed.server.store().delete("secrets", "a", "one").unwrap();

    // The relay's kernel answers for it. The client gives a watch up after 240 s without a byte.
    pass(Duration::from_secs(230)).await;
    assert!(
        bed.view.live().now_or_never().is_some() && bed.view.get("a", "one").is_some(),
        "nothing can have been noticed"
    );
    pass(Duration::from_secs(11)).await;
    bed.asked("list", 2).await;
    bed.change().await;
    assert_eq!((bed.view.get("a", "one"), bed.view.all().len()), (None, 1));
    relay.abort();
    bed.end().await;
}

/// Lets time pass at once, and what waited for it run.
pub async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_watch_that_is_silent_after_a_request_was_given_up_ends_after_30_s() {
    let server = server(Options {
        bookmark_interval: NEVER,
        ..Options::default()
    })
    .await;
    let client = client(&server.kubeconfig(TOKEN)).await;
    let secrets: Api<Secret> = Api::all(client.clone());
    let leases: Api<Lease> = Api::all(client.clone());
    let version = secrets
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let params = WatchParams::default();
    let mut silent = secrets.watch(&params, &version).await.unwrap().boxed();
    let mut lively = leases.watch(&params, &version).await.unwrap().boxed();
    let lost = server
        .faults()
        .add(When::request("GET", "/version").once(), Fault::Stall);
    dropped_after(&server, &client, lost, Duration::from_secs(1)).await;
    assert!(silent.next().now_or_never().is_none());
    assert!(lively.next().now_or_never().is_none());
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": "a", "name": "one"}});
    server.store().create(lease).unwrap();
    let event = timeout(PATIENCE, lively.next()).await.expect("an event");
    assert!(matches!(event, Some(Ok(WatchEvent::Added(_)))), "{event:?}");
    pass(Duration::from_secs(29)).await;
    assert!(silent.next().now_or_never().is_none(), "too early");
    pass(Duration::from_secs(1)).await;
    let end = timeout(PATIENCE, silent.next()).await.expect("it ends");
    assert!(matches!(end, Some(Err(_))), "it is listed again: {end:?}");
    pass(Duration::from_secs(60)).await;
    assert!(
        lively.next().now_or_never().is_none(),
        "its connection lives"
    );
}

#[tokio::test]
async fn a_watch_without_an_event_or_a_bookmark_goes_on_as_if_nothing_had_been() {
    // As a kube-apiserver that has seen no event of a kind: it sends no bookmark either.
    let server = server(Options {
        bookmark_interval: NEVER,
        ..Options::default()
    })
    .await;
    let url = server.url();
    let mut bed = ViewBed::start(server, &url).await;
    let live_since = bed.view.live_since();
    for watches in 1..4 {
        bed.asked("watch", watches).await;
        // What comes through the watch shows that it has begun.
        let metadata = json!({"namespace": "a", "name": watches.to_string()});
        bed.server
            .store()
            .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
            .unwrap();
        assert_eq!(bed.change().await, watches.to_string());
        pass(Duration::from_secs(226)).await;
    }
    assert_eq!(
        (bed.view.live_since(), bed.count("list")),
        (live_since, 1),
        "it did not break"
    );
    bed.end().await;
}

/// A view of the Secrets of a server, of which nothing is kept.
struct RunningView {
    view: Arc<View<()>>,
    cancelled: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningView {
    async fn of_secrets(server: &MemoryApi) -> Self {
        let api: Api<Secret> = Api::all(client(&server.kubeconfig(TOKEN)).await);
        let (view, cancelled) = (
            View::new("secrets", &UnreadableObjects::default()),
            CancellationToken::new(),
        );
        let work = Arc::clone(&view).run(
            api,
            watcher::Config::default(),
            |_: Secret| Some(()),
            None,
            cancelled.clone(),
        );
        Self {
            view,
            cancelled,
            task: tokio::spawn(work),
        }
    }

    async fn end(self) {
        self.cancelled.cancel();
        timeout(PATIENCE, self.task)
            .await
            .expect("it ends")
            .expect("no panic");
    }
}

#[tokio::test]
async fn a_watch_that_does_not_begin_is_given_up() {
    let server = server(Options::default()).await;
    let lost = server
        .faults()
        .add(When::verb("watch", "secrets").once(), Fault::Stall);
    let secrets = RunningView::of_secrets(&server).await;
    timeout(PATIENCE, server.faults().met(lost, 1))
        .await
        .expect("a watch");
    pass(Duration::from_secs(31)).await;
    let watched = server.requests().wait_for(|records| {
        records
            .iter()
            .any(|record| answered(record, "watch"))
            .then_some(())
    });
    timeout(PATIENCE, watched).await.expect("another watch");
    assert_eq!(
        server.requests().count(|record| answered(record, "list")),
        2
    );
    secrets.end().await;
}

/// 200, and the end.
fn nothing() -> Fault {
    Fault::Answer {
        code: 200,
        headers: vec![],
        body: "".into(),
    }
}

#[tokio::test]
async fn a_watch_that_ends_as_soon_as_it_is_open_is_broken_and_opened_again_after_growing_waits() {
    let server = server(Options::default()).await;
    let url = server.url();
    let mut bed = ViewBed::start(server, &url).await;
    let empty = bed
        .server
        .faults()
        .add(When::verb("watch", "secrets"), nothing());
    let begin = Instant::now();
    bed.server.store().break_watches();
    timeout(PATIENCE, bed.server.faults().met(empty, 4))
        .await
        .expect("it is tried again");
    // 0.1, 0.2 and 0.4 s, and jitter.
    assert!(
        begin.elapsed() >= Duration::from_millis(700),
        "{:?}",
        begin.elapsed()
    );
    assert!(
        bed.view.live_since().is_none() && bed.view.is_known(),
        "broken, for less than a minute"
    );
    bed.server.faults().clear();
    timeout(PATIENCE, bed.view.live())
        .await
        .expect("it works again");
    bed.server.store().delete("secrets", "a", "one").unwrap();
    assert_eq!(bed.change().await, "one");
    assert_eq!(bed.count("list"), 1, "it went on where it had ended");
    bed.end().await;
}

#[tokio::test]
async fn an_api_server_that_asks_for_time_gets_it_and_the_watch_goes_on_without_a_list() {
    // Without Retry-After it is 10 s. What Kubernetes' API priority and fairness answers is no
    // Status.
    for (retry_after, expected) in [(Some("7"), 7), (None, 10), (Some("3600"), 60)] {
        let server = server(Options::default()).await;
        let url = server.url();
        let mut bed = ViewBed::start(server, &url).await;
        let headers = retry_after
            .map(|seconds| ("retry-after".to_owned(), seconds.to_owned()))
            .into_iter()
            .collect();
        let body = "Too many requests, please try again later.".into();
        let refused = bed.server.faults().add(
            When::verb("watch", "secrets").times(2),
            Fault::Answer {
                code: 429,
                headers,
                body,
            },
        );
        bed.server.store().break_watches();
        timeout(PATIENCE, bed.server.faults().met(refused, 1))
            .await
            .expect("a watch");
        bed.server.store().delete("secrets", "a", "one").unwrap();
        tokio::time::pause();
        let begin = Instant::now();
        bed.server.faults().met(refused, 2).await;
        let waited = begin.elapsed();
        assert_eq!(waited.as_secs(), expected, "{retry_after:?}: {waited:?}");
        assert!(bed.view.live_since().is_none());
        assert_eq!(bed.change().await, "one");
        bed.view.live().await;
        tokio::time::resume();
        assert_eq!(
            (bed.count("list"), bed.view.listed_at()),
            (1, None),
            "known again, and not by a list"
        );
        bed.end().await;
    }
}

#[tokio::test]
async fn an_ordinary_end_of_a_watch_interrupts_nothing() {
    let server = server(Options::default()).await;
    let url = server.url();
    let mut bed = ViewBed::start(server, &url).await;
    let (live_since, listed_at) = (bed.view.live_since(), bed.view.listed_at());
    for round in 2..4 {
        let metadata = json!({"namespace": "a", "name": round.to_string()});
        bed.server
            .store()
            .create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}))
            .unwrap();
        assert_eq!(bed.change().await, round.to_string());
        bed.server.store().break_watches();
        bed.asked("watch", round).await;
    }
    bed.server.store().delete("secrets", "a", "one").unwrap();
    assert_eq!(bed.change().await, "one");
    assert!(live_since.is_some() && listed_at.is_some());
    assert_eq!(
        (
            bed.view.live_since(),
            bed.view.listed_at(),
            bed.count("list")
        ),
        (live_since, listed_at, 1)
    );
    bed.end().await;
}

#[tokio::test]
async fn a_list_has_as_long_as_an_api_server_takes_for_it() {
    let server = server(Options::default()).await;
    let listed = CancellationToken::new();
    let held = server.faults().add(
        When::verb("list", "secrets").once(),
        Fault::Hold(listed.clone()),
    );
    let secrets = RunningView::of_secrets(&server).await;
    timeout(PATIENCE, server.faults().met(held, 1))
        .await
        .expect("a list");
    // kube-apiserver's --request-timeout
    pass(Duration::from_secs(60)).await;
    listed.cancel();
    timeout(PATIENCE, secrets.view.live())
        .await
        .expect("an answer");
    assert_eq!(
        server.requests().count(|record| answered(record, "list")),
        1
    );
    secrets.end().await;
}

#[tokio::test]
async fn a_list_that_never_ends_is_given_up_and_begun_again_after_growing_waits() {
    let server = server(Options::default()).await;
    let page = json!({"kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "7", "continue": "again"}, "items": []});
    let answer = Fault::Answer {
        code: 200,
        headers: vec![],
        body: page.to_string().into(),
    };
    let endless = server.faults().add(When::verb("list", "secrets"), answer);
    let secrets = RunningView::of_secrets(&server).await;
    let begin = Instant::now();
    // Each time the first page, and the one that says that it follows itself.
    timeout(PATIENCE, server.faults().met(endless, 8))
        .await
        .expect("it is tried again");
    // 0.1, 0.2 and 0.4 s, and jitter.
    assert!(
        begin.elapsed() >= Duration::from_millis(700),
        "{:?}",
        begin.elapsed()
    );
    assert!(!secrets.view.is_known());
    server.faults().clear();
    timeout(PATIENCE, secrets.view.live())
        .await
        .expect("it is known at last");
    secrets.end().await;
}

/// What an API server answers whose groups are these.
fn groups(names: &[&str]) -> Fault {
    let groups = names
        .iter()
        .map(|name| json!({"name": name, "versions": []}))
        .collect::<Vec<_>>();
    let list = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups});
    Fault::Answer {
        code: 200,
        headers: vec![],
        body: list.to_string().into(),
    }
}

/// A view of Leases, which may be absent, on a server that answers 404 to their lists and this to
/// what groups it has.
async fn optional(server: &MemoryApi, discovery: Fault) -> (Arc<View<()>>, JoinHandle<()>) {
    server
        .faults()
        .add(When::verb("list", LEASES), Fault::status(404));
    server
        .faults()
        .add(When::request("GET", "/apis"), discovery);
    let api: Api<Lease> = Api::all(client(&server.kubeconfig(TOKEN)).await);
    let view = View::of_optional_kind("leases", &UnreadableObjects::default());
    let work = Arc::clone(&view).run(
        api,
        watcher::Config::default(),
        |_| Some(()),
        None,
        CancellationToken::new(),
    );
    (view, tokio::spawn(work))
}

#[tokio::test]
async fn of_a_kind_that_the_api_server_does_not_have_there_are_none_until_it_has() {
    let server = server(Options::default()).await;
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": "a", "name": "one"}});
    server.store().create(lease).unwrap();
    let (view, task) = optional(&server, groups(&["apps"])).await;
    timeout(PATIENCE, view.live()).await.expect("known");
    // The wait before the next list may only be about to begin.
    let waited = async |verb: &str, count: usize| {
        let again = server.requests().wait_for(|all| {
            let asked = all
                .iter()
                .filter(|record| record.resource == LEASES && record.verb == verb);
            (asked.count() >= count).then_some(())
        });
        tokio::pin!(again);
        while timeout(Duration::from_millis(100), &mut again)
            .await
            .is_err()
        {
            assert!(view.is_known());
            pass(Duration::from_secs(30)).await;
        }
    };
    waited("list", 4).await;
    assert!(view.all().is_empty());
    // Its definition is installed, and later the API server says that it is not.
    server.faults().clear();
    waited("watch", 1).await;
    assert_eq!(view.all().len(), 1);
    let refused = server
        .faults()
        .add(When::verb("list", LEASES), Fault::status(404));
    server
        .faults()
        .add(When::request("GET", "/apis"), groups(&["apps"]));
    server
        .faults()
        .add(When::verb("watch", LEASES).once(), Fault::status(410));
    server.store().break_watches();
    timeout(PATIENCE, server.faults().met(refused, 2))
        .await
        .expect("it is listed again");
    assert_eq!(view.all().len(), 1, "what was known stays known");
    task.abort();
}

#[tokio::test]
async fn that_a_kind_is_not_found_is_no_proof_that_it_is_absent() {
    let has = groups(&["apps", "coordination.k8s.io"]);
    for discovery in [
        has,
        groups(&[]),
        Fault::status(404),
        Fault::status(503),
        Fault::Garbage,
        Fault::CloseBefore,
    ] {
        let server = server(Options::default()).await;
        let (view, task) = optional(&server, discovery.clone()).await;
        let asked = server
            .requests()
            .wait_for(|all| (all.iter().filter(|of| of.path == "/apis").count() > 2).then_some(()));
        timeout(PATIENCE, asked).await.expect("it is searched for");
        assert!(!view.is_known(), "{discovery:?}");
        task.abort();
    }
}

#[tokio::test]
async fn the_log_has_changes_of_a_watchs_state_with_their_causes_and_not_each_attempt() {
    let server = server(Options::default()).await;
    let lines = Arc::new(Mutex::new(Vec::<Value>::new()));
    let heard = Arc::clone(&lines);
    let sink = move |line: Vec<u8>| {
        heard
            .lock()
            .unwrap()
            .push(serde_json::from_slice(&line).unwrap())
    };
    // With a single logger tracing asks that of whichever test is first whether a line is wanted,
    // and remembers it for all.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).ok();
    let log =
        tracing_subscriber::registry().with(ZapLayer::new(LevelFilter::DEBUG, sink, Utc::now));
    let api: Api<Secret> = Api::all(client(&server.kubeconfig(TOKEN)).await);
    let (view, cancelled) = (
        View::new("secrets", &UnreadableObjects::default()),
        CancellationToken::new(),
    );
    let work = Arc::clone(&view).run(
        api,
        watcher::Config::default(),
        |_: Secret| Some(()),
        None,
        cancelled.clone(),
    );
    let cut = server
        .faults()
        .add(When::verb("list", "secrets").times(3), Fault::CloseBefore);
    let refused = server.faults().add(
        When::verb("watch", "secrets").after(1).times(3),
        Fault::status(403),
    );
    let task = tokio::spawn(work.with_subscriber(log));
    let said = async |count: usize| {
        let said = async {
            while lines.lock().unwrap().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        assert!(
            timeout(PATIENCE, said).await.is_ok(),
            "{:?}",
            lines.lock().unwrap()
        );
    };
    said(2).await;
    server.store().break_watches();
    said(4).await;
    let lines = lines.lock().unwrap().clone();
    let messages: Vec<_> = lines
        .iter()
        .map(|line| line["msg"].as_str().unwrap())
        .collect();
    let works = "watch works again";
    assert_eq!(
        messages,
        [
            "cannot be listed yet, trying again",
            works,
            "watch broke, it is restarted",
            works
        ],
        "{lines:?}"
    );
    assert_eq!(
        (server.faults().hits(cut), server.faults().hits(refused)),
        (3, 3)
    );
    let causes = lines[0]["error"].as_str().unwrap();
    assert!(causes.contains("(SendRequest): "), "{causes}");
    cancelled.cancel();
    timeout(PATIENCE, task)
        .await
        .expect("it ends")
        .expect("no panic");
}
