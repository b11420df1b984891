//! The connections to the seed, all of them replaced once a request had to be given up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy;
use kube::client::Body;
use kube::core::Status;
use kube::core::response::StatusDetails;
use kube::{Client, Config};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::Access;
use super::plugin::redact_exec_error;
use super::transport::client;
use crate::metrics::RequestCounter;

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

/// Sends requests over kept connections. Whoever gives up waiting for an answer has met a
/// connection that the network has forgotten, and what has forgotten one, a gateway or a load
/// balancer that was replaced, has forgotten all: no request that follows is sent on any of them.
/// What is on its way, open watches included, goes on.
///
/// A single connection is not what is replaced: over HTTP/1.1, which is all that is spoken here, a
/// request that was given up ends its own, and the pool would go on with the next one that is dead
/// as well.
///
/// With the connections what they are made with is read again, also after one that could not be
/// made and after credentials that were not accepted: the seed's address, its authority and the
/// credentials may have been rotated.
///
/// A kubeconfig with a plugin for credentials keeps its connections while its authority stays: new
/// ones would run the plugin, and all requests would wait for it.
pub(super) struct Connections {
    kubeconfig: Option<PathBuf>,
    counter: RequestCounter,
    current: Mutex<Current>,
}

struct Current {
    access: Access,
    client: Client,
    host: String,
    since: Instant,
    /// Cancelled when a request of this very client was given up, or could not get to the seed.
    outdated: CancellationToken,
}

impl Current {
    fn new(access: Access) -> Result<Self, kube::Error> {
        let (client, host) = (client(&access).map_err(redact_exec_error)?, access.host());
        Ok(Self {
            access,
            client,
            host,
            since: Instant::now(),
            outdated: CancellationToken::new(),
        })
    }
}

/// A request on its way. When it is over, it is counted: answered, failed, or given up by whoever
/// waited for it.
struct Pending {
    since: Instant,
    client_since: Instant,
    outdated: CancellationToken,
    counter: RequestCounter,
    host: String,
    method: Method,
    /// Whether there was an answer or an error. Also with an error the connections have dealt with
    /// it themselves.
    ended: bool,
    status: Option<StatusCode>,
}

impl Pending {
    fn ends(mut self, answer: &kube::Result<Response<Body>>) {
        (self.ended, self.status) = (true, answer.as_ref().ok().map(Response::status));
        let failed =
            self.status == Some(StatusCode::UNAUTHORIZED) || answer.as_ref().is_err_and(is_connect);
        if failed && self.client_since.elapsed() >= REREAD_PAUSE {
            self.outdated.cancel();
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.counter.count(&self.host, &self.method, self.status);
        if !self.ended && self.since.elapsed() >= GIVEN_UP_AFTER {
            self.outdated.cancel();
        }
    }
}

fn has_plugin(config: &Config) -> bool {
    config.auth_info.exec.is_some() || config.auth_info.auth_provider.is_some()
}

fn begins_a_watch(request: &Request<Body>) -> bool {
    request
        .uri()
        .query()
        .is_some_and(|query| query.split('&').any(|part| part == "watch=true"))
}

fn is_connect(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(error) if error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect))
}

/// The answer, or the error that it is if it says after how long to ask again: as client-go reads
/// it also where the body is no Status, as from API priority and fairness, which kube would lose.
async fn with_retry_after(answer: Response<Body>) -> kube::Result<Response<Body>> {
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
    let plain = || {
        Status::failure(String::from_utf8_lossy(&body).trim(), code.as_str())
            .with_code(code.as_u16())
    };
    let mut status = serde_json::from_slice(&body).unwrap_or_else(|_| plain());
    let none = StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    };
    status.details.get_or_insert(none).retry_after_seconds = seconds;
    Err(kube::Error::Api(Box::new(status)))
}

impl Connections {
    pub(super) fn new(
        access: Access,
        kubeconfig: Option<PathBuf>,
        counter: RequestCounter,
    ) -> Result<Self, kube::Error> {
        Ok(Self {
            kubeconfig,
            counter,
            current: Mutex::new(Current::new(access)?),
        })
    }

    pub(super) async fn send(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> kube::Result<Response<Body>> {
        let (client, pending) = {
            let mut current = self.current.lock().await;
            if current.outdated.is_cancelled() {
                self.renew(&mut current).await;
            }
            let pending = Pending {
                since: Instant::now(),
                client_since: current.since,
                outdated: current.outdated.clone(),
                counter: self.counter.clone(),
                host: current.host.clone(),
                method: request.method().clone(),
                ended: false,
                status: None,
            };
            (current.client.clone(), pending)
        };
        let answer = if begins_a_watch(&request) {
            let limited = timeout(WATCH_START, client.send(request)).await;
            limited.map_err(|elapsed| kube::Error::Service(elapsed.into()))?
        } else {
            client.send(request).await
        };
        pending.ends(&answer);
        with_retry_after(answer.map_err(redact_exec_error)?).await
    }

    async fn renew(&self, current: &mut Current) {
        (current.since, current.outdated) = (Instant::now(), CancellationToken::new());
        let access = match Access::read(self.kubeconfig.as_deref()).await {
            Ok(access) => access,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    error,
                    "how to get to the seed cannot be read again, what was known of it stays in use"
                );
                current.access.clone()
            }
        };
        if has_plugin(&access.config) && access.config.root_cert == current.access.config.root_cert
        {
            return;
        }
        match Current::new(access) {
            Ok(renewed) => *current = renewed,
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(
                    error,
                    "no new connections to the seed can be made, the ones there are stay in use"
                );
            }
        }
    }
}
