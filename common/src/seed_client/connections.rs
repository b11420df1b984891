//! The connections to the seed, all of them replaced once a request had to be given up.

mod watch_body;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use kube::core::Status;
use kube::core::response::StatusDetails;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout};
use tower::{BoxError, ServiceExt};

use self::watch_body::until_silent;
use super::credentials::SeedCredentials;
use super::{KubeconfigChoice, SeedAccess, SeedRoute};
use crate::logging::with_causes;
use crate::metrics::RequestCounter;
use crate::transport::Dialer;

/// The shortest time after which whoever waits for an answer gives up is 1 s (rule 80); a little
/// less, since some of it may pass before the request gets here. Whoever drops a request sooner has
/// another reason: a scaling is abandoned, the process ends. Who drops a later one for such a
/// reason costs a handshake, no more; an answer takes milliseconds.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(800);
/// A watch must begin within this time: an API server answers at once that it watches, whatever
/// there is to show.
const WATCH_START: Duration = Duration::from_secs(30);

/// The shortest time between two readings of how to get to the seed, while it cannot be reached.
const REREAD_PAUSE: Duration = Duration::from_secs(1);

type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// Sends requests over kept connections. Whoever gives up waiting for an answer has met a
/// connection that the network has forgotten, and what has forgotten one, a gateway or a load
/// balancer that was replaced, has forgotten all: no request that follows is sent on any of them.
/// What is on its way goes on; an open watch only if it gives a byte within 30 s ([`watch_body`]).
///
/// A single connection is not what is replaced: over HTTP/1.1, which is all that is spoken here, a
/// request that was given up ends its own, and the pool would go on with the next one that is dead
/// as well.
///
/// With the connections what they are made with is read again, also after an error that is no
/// server's answer and after credentials that were not accepted: the seed's address, its authority
/// and the credentials may have been rotated.
///
/// The credentials stay while the kubeconfig says the same of the user and they are accepted: all
/// requests would wait for a plugin.
pub(super) struct Connections {
    choice: KubeconfigChoice,
    dialer: Dialer,
    counter: RequestCounter,
    current: Mutex<Arc<CurrentClient>>,
    /// Notified of each request that is given up and waits for nothing but the API server.
    given_up: Arc<Notify>,
}

struct CurrentClient {
    access: SeedAccess,
    credentials: Arc<SeedCredentials>,
    route: SeedRoute,
    since: Instant,
    /// Set when a request of this very client was given up, or had no answer that helps.
    outdated: AtomicBool,
    /// Set when the credentials were not accepted.
    refused: AtomicBool,
}

impl CurrentClient {
    fn new(access: SeedAccess, credentials: Arc<SeedCredentials>, route: SeedRoute) -> Arc<Self> {
        Arc::new(Self {
            access,
            credentials,
            route,
            since: Instant::now(),
            outdated: AtomicBool::new(false),
            refused: AtomicBool::new(false),
        })
    }

    async fn connect(
        access: SeedAccess,
        dialer: &Dialer,
        known: Option<&Self>,
    ) -> anyhow::Result<Arc<Self>> {
        let credentials = match known {
            Some(known)
                if !known.refused.load(Ordering::Relaxed)
                    && user(&access) == user(&known.access) =>
            {
                Arc::clone(&known.credentials)
            }
            _ => Arc::new(SeedCredentials::of(access.context.user.as_ref()).await?),
        };
        let route = access.route(&credentials, dialer)?;
        Ok(Self::new(access, credentials, route))
    }

    async fn send(&self, mut request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let header = self.credentials.header().await?;
        let headers = request.headers_mut();
        if let Some(header) = header {
            headers.insert(AUTHORIZATION, header);
        }
        headers.extend(self.route.headers.clone());
        let answer = self.route.service.clone().oneshot(request).await;
        let answer = answer.map_err(|source| {
            let address = self.route.host.clone();
            NoAnswer { address, source }
        })?;
        Ok(answer.map(|body| ResponseBody::new(body.map_err(Into::into))))
    }
}

/// A request that failed. hyper's own words, such as "client error (Connect)", do not say where.
#[derive(Debug, thiserror::Error)]
#[error("no answer from {address}")]
struct NoAnswer {
    address: String,
    source: BoxError,
}

/// A request on its way. When it is over, it is counted: answered, failed, or given up by whoever
/// waited for it.
struct PendingRequest {
    client: Arc<CurrentClient>,
    counter: RequestCounter,
    given_up: Arc<Notify>,
    since: Instant,
    method: Method,
    /// True if there was an answer or an error.
    ended: bool,
    status: Option<StatusCode>,
}

impl PendingRequest {
    fn end<B, E>(mut self, answer: &Result<Response<B>, E>) {
        self.ended = true;
        self.status = answer.as_ref().ok().map(Response::status);
        let refused = self.status == Some(StatusCode::UNAUTHORIZED);
        if (answer.is_err() || refused) && self.client.since.elapsed() >= REREAD_PAUSE {
            self.client.refused.store(refused, Ordering::Relaxed);
            self.client.outdated.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let host = &self.client.route.host;
        self.counter.count(host, &self.method, self.status);
        let given_up = !self.ended && self.since.elapsed() >= GIVEN_UP_AFTER;
        if given_up {
            self.client.outdated.store(true, Ordering::Relaxed);
            // Other writes may wait for a webhook, which says nothing of the connections.
            if matches!(self.method, Method::GET | Method::PUT) {
                self.given_up.notify_waiters();
            }
        }
        if self.ended || given_up {
            self.counter.ended(self.status);
        }
    }
}

/// What a kubeconfig says of the user.
fn user(access: &SeedAccess) -> Option<serde_json::Value> {
    serde_json::to_value(&access.context.user.as_ref()?.value).ok()
}

fn begins_a_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|part| part == "watch=true")
}

/// The answer, or the error that it is if it says after how long to ask again: as client-go reads
/// it also where the body is no Status, as from API priority and fairness, which kube would lose.
async fn with_retry_after(
    answer: Response<ResponseBody>,
) -> Result<Response<ResponseBody>, BoxError> {
    let code = answer.status();
    let seconds = answer
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let Some(seconds) =
        seconds.filter(|_| code == StatusCode::TOO_MANY_REQUESTS || code.is_server_error())
    else {
        return Ok(answer);
    };
    let body = answer.into_body().collect().await?.to_bytes();
    let mut status = serde_json::from_slice(&body).unwrap_or_else(|_| {
        let message = String::from_utf8_lossy(&body);
        Status::failure(message.trim(), code.as_str()).with_code(code.as_u16())
    });
    let mut details = status.details.unwrap_or_else(|| StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    });
    details.retry_after_seconds = seconds;
    status.details = Some(details);
    Err(kube::Error::Api(Box::new(status)).into())
}

impl Connections {
    pub(super) async fn new(
        access: SeedAccess,
        choice: KubeconfigChoice,
        dialer: Dialer,
        counter: RequestCounter,
    ) -> anyhow::Result<Self> {
        let client = CurrentClient::connect(access, &dialer, None).await?;
        Ok(Self {
            choice,
            dialer,
            counter,
            current: Mutex::new(client),
            given_up: Arc::default(),
        })
    }

    pub(super) async fn send(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let client = self.current_client().await;
        let pending = PendingRequest {
            client: Arc::clone(&client),
            counter: self.counter.clone(),
            given_up: self.given_up.clone(),
            since: Instant::now(),
            method: request.method().clone(),
            ended: false,
            status: None,
        };
        let is_watch = begins_a_watch(&request);
        let send = client.send(request);
        let answer = if is_watch {
            timeout(WATCH_START, send).await?
        } else {
            send.await
        };
        pending.end(&answer);
        let answer = with_retry_after(answer?).await?;
        if !is_watch {
            return Ok(answer);
        }
        let given_up = Arc::clone(&self.given_up);
        Ok(answer.map(|body| ResponseBody::new(until_silent(body, given_up))))
    }

    async fn current_client(&self) -> Arc<CurrentClient> {
        let mut current = self.current.lock().await;
        if current.outdated.load(Ordering::Relaxed) {
            *current = self.renewed(&current).await;
        }
        Arc::clone(&current)
    }

    async fn renewed(&self, known: &CurrentClient) -> Arc<CurrentClient> {
        let kept = |error: anyhow::Error| {
            tracing::warn!(
                error = with_causes(&*error),
                "how to get to the seed cannot be read again, what was known of it stays in use"
            );
        };
        let access = SeedAccess::read(&self.choice);
        let access = access
            .map_err(kept)
            .unwrap_or_else(|()| known.access.clone());
        let renewed = CurrentClient::connect(access, &self.dialer, Some(known)).await;
        renewed.map_err(kept).unwrap_or_else(|()| {
            let credentials = Arc::clone(&known.credentials);
            let route = known.access.route(&credentials, &self.dialer);
            let route = route.unwrap_or_else(|_| known.route.clone());
            CurrentClient::new(known.access.clone(), credentials, route)
        })
    }
}
