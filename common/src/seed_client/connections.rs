//! The connections to the seed, all of them replaced once one of them has not led to an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use kube::client::Body;
use kube::core::Status;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use tower::{BoxError, ServiceExt};

use crate::logging::with_causes;
use crate::metrics::RequestCounter;
use crate::transport::{Dialer, RequestSender, Route, Server, http_client};

/// The longest that connecting may take once the seed's name is resolved, TLS included: as for
/// kubectl, which has 10 s for TLS. The requests have limits of their own.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without a byte after which a connection is given up: longer than a watch lasts, since one
/// of a kind that nobody changes may have neither an event nor a bookmark. The kernel notices a
/// dead connection within 30 s; this is for a proxy that answers the kernel's probes for a server
/// that is gone.
const READ_TIMEOUT: Duration = Duration::from_secs(240);
/// The shortest time after which whoever waits for an answer gives up is 1 s (rule 80); a little
/// less, since some of it may pass before the request gets here. Whoever drops a request sooner has
/// another reason: a write is cancelled, the process ends. Who drops a later one for such a
/// reason costs a handshake, and a run of the program that prints the credentials, if there is one;
/// an answer takes milliseconds.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(800);
/// The shortest life of a client that cannot reach the seed.
const RENEW_PAUSE: Duration = Duration::from_secs(1);
/// A watch must begin within this time: an API server answers at once that it watches, whatever
/// there is to show.
const WATCH_START: Duration = Duration::from_secs(30);

type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;
/// Finds out where the seed is, and who this process is there.
pub(super) type FindSeed = dyn Fn() -> anyhow::Result<Server> + Send + Sync;

/// Sends requests over kept connections. Whoever gives up waiting for an answer has met a
/// connection that the network has forgotten, and what has forgotten one, a gateway or a load
/// balancer that was replaced, has forgotten all: no request that follows is sent on any of them.
/// What is on its way goes on.
///
/// A single connection is not what is replaced: over HTTP/1.1, which is all that is spoken here, a
/// request that was given up ends its own, and the pool would go on with the next one that is dead
/// as well.
///
/// After an error that is no server's answer, and after credentials that were not accepted, it is
/// the same: the seed's address, its authority and the credentials may have been rotated, and are
/// read again.
pub(super) struct Connections {
    find: Arc<FindSeed>,
    dialer: Dialer,
    counter: RequestCounter,
    current: Mutex<Arc<CurrentClient>>,
}

struct CurrentClient {
    route: Arc<Route>,
    sender: RequestSender<Body>,
    since: Instant,
    /// Set when a request of this very client was given up, had no answer, or its credentials were
    /// not accepted.
    is_stale: AtomicBool,
}

impl CurrentClient {
    /// A client with connections of its own. Leaves out kube's log line for each failed request:
    /// whoever asked says what failed. Leaves out its repetitions, too: the caller decides when to
    /// retry, since a watch, a write and an election differ in it.
    fn new(route: Arc<Route>, dialer: &Dialer) -> Arc<Self> {
        let mut connector = TimeoutConnector::new(route.connector(dialer, CONNECT_TIMEOUT));
        connector.set_read_timeout(Some(READ_TIMEOUT));
        connector.set_write_timeout(Some(READ_TIMEOUT));
        connector.set_reset_reader_on_write(true);
        Arc::new(Self {
            sender: route.sender(http_client().build(connector)),
            route,
            since: Instant::now(),
            is_stale: AtomicBool::new(false),
        })
    }

    async fn send(&self, request: Request<Body>) -> anyhow::Result<Response<Incoming>> {
        let answer = self.sender.clone().oneshot(request).await;
        let answer = answer.map_err(anyhow::Error::from_boxed);
        // hyper's own words, such as "client error (Connect)", do not say where.
        answer.with_context(|| format!("no answer from {}", self.route.host))
    }
}

/// A request on its way. When it is over, it is counted: answered, failed, or given up by whoever
/// waited for it.
struct PendingRequest {
    client: Arc<CurrentClient>,
    counter: RequestCounter,
    since: Instant,
    method: Method,
    /// `None` until it ended by itself, by an answer or an error.
    end: Option<Result<StatusCode, ()>>,
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let client = &self.client;
        let status = self.end.and_then(Result::ok);
        self.counter.count(&client.route.host, &self.method, status);
        let is_stale = match self.end {
            None if self.since.elapsed() < GIVEN_UP_AFTER => return,
            None => true,
            Some(Err(()) | Ok(StatusCode::UNAUTHORIZED)) => client.since.elapsed() >= RENEW_PAUSE,
            Some(Ok(_)) => false,
        };
        self.counter.ended(status);
        client.is_stale.fetch_or(is_stale, Ordering::Relaxed);
    }
}

fn begins_a_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|part| part == "watch=true")
}

/// The answer, or the error that it is if it says after how long to ask again: as client-go reads
/// it also where the body is no Status, as from API priority and fairness, which kube would lose.
async fn with_retry_after(answer: Response<Incoming>) -> Result<Response<ResponseBody>, BoxError> {
    let seconds = answer.headers().get(RETRY_AFTER).cloned();
    let seconds = seconds.filter(|_| answer.status() == StatusCode::TOO_MANY_REQUESTS);
    let Some(seconds) = seconds else {
        return Ok(answer.map(|body| ResponseBody::new(body.map_err(Into::into))));
    };
    let body = answer.into_body().collect().await?.to_bytes();
    let status = serde_json::from_slice(&body).unwrap_or_else(|_| {
        let message = String::from_utf8_lossy(&body);
        let seconds: Option<u32> = seconds.to_str().ok().and_then(|text| text.parse().ok());
        let mut status = Status::failure(message.trim(), "TooManyRequests").with_code(429);
        status.details = serde_json::from_value(json!({ "retryAfterSeconds": seconds })).ok();
        status
    });
    Err(kube::Error::Api(Box::new(status)).into())
}

impl Connections {
    pub(super) async fn open(
        find: Arc<FindSeed>,
        dialer: Dialer,
        counter: RequestCounter,
    ) -> anyhow::Result<Self> {
        let client = CurrentClient::new(route(&*find).await?, &dialer);
        Ok(Self {
            find,
            dialer,
            counter,
            current: Mutex::new(client),
        })
    }

    pub(super) async fn send(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let client = self.current_client().await;
        let mut pending = PendingRequest {
            client: Arc::clone(&client),
            counter: self.counter.clone(),
            since: Instant::now(),
            method: request.method().clone(),
            end: None,
        };
        let is_watch = begins_a_watch(&request);
        let send = client.send(request);
        let answer = if is_watch {
            timeout(WATCH_START, send).await?
        } else {
            send.await
        };
        pending.end = Some(answer.as_ref().map(Response::status).map_err(|_| ()));
        drop(pending);
        with_retry_after(answer?).await
    }

    async fn current_client(&self) -> Arc<CurrentClient> {
        let mut current = self.current.lock().await;
        if current.is_stale.load(Ordering::Relaxed) {
            let route = route(&*self.find).await.unwrap_or_else(|error| {
                tracing::warn!(
                    error = with_causes(&*error),
                    "how to get to the seed cannot be read again, what was known of it stays in use"
                );
                Arc::clone(&current.route)
            });
            *current = CurrentClient::new(route, &self.dialer);
        }
        Arc::clone(&current)
    }
}

/// The way to the seed. A program that prints the credentials runs beside everything else; kube
/// panics at a token of it that no header can carry.
async fn route(find: &FindSeed) -> anyhow::Result<Arc<Route>> {
    let seed = find()?;
    let user = &seed.config.auth_info;
    if user.exec.is_none() && user.auth_provider.is_none() {
        return Ok(seed.route()?);
    }
    let prepared = spawn_blocking(|| seed.route()).await;
    let refused = "the kubeconfig names or prints a token that no HTTP header can carry";
    Ok(prepared.context(refused)??)
}
