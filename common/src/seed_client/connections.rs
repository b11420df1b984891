//! The connections to the seed, all of them replaced once a request had to be given up.

use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use kube::{Client, Config};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::plugin::discreet;
use super::transport::client;
use crate::metrics::RequestCounter;

/// The shortest time after which whoever waits for an answer gives up is 1 s (rule 80); a little less, since some of it may pass
/// before the request gets here. Whoever drops a request sooner has another reason: a scaling is abandoned, the process ends. Who
/// drops a later one for such a reason costs a handshake, no more; an answer takes milliseconds.
const GIVEN_UP_AFTER: Duration = Duration::from_millis(800);
/// A watch must begin within this time: an API server answers at once that it watches, whatever there is to show.
const WATCH_START: Duration = Duration::from_secs(30);

/// Sends requests over kept connections. Whoever gives up waiting for an answer has met a connection that the network has
/// forgotten, and what has forgotten one, a gateway or a load balancer that was replaced, has forgotten all: no request that
/// follows is sent on any of them. What is on its way, open watches included, goes on.
///
/// A single connection is not what is replaced: over HTTP/1.1, which is all that is spoken here, a request that was given up ends its
/// own, and the pool would go on with the next one that is dead as well.
///
/// A kubeconfig with a plugin for credentials keeps its connections: new ones would run the plugin, and all requests would wait for it.
pub(super) struct Connections {
    config: Config,
    client: Client,
    /// Cancelled when a request of this very client was given up.
    given_up: CancellationToken,
    counter: RequestCounter,
    host: String,
}

/// A request on its way. When it is over, it is counted: answered, failed, or given up by whoever waited for it.
struct Pending {
    since: Instant,
    given_up: CancellationToken,
    counter: RequestCounter,
    host: String,
    method: Method,
    /// Whether there was an answer or an error. Also with an error the connections have dealt with it themselves.
    ended: bool,
    status: Option<StatusCode>,
}

impl Pending {
    fn ends(mut self, status: Option<StatusCode>) {
        (self.ended, self.status) = (true, status);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.counter.count(&self.host, &self.method, self.status);
        if !self.ended && self.since.elapsed() >= GIVEN_UP_AFTER {
            self.given_up.cancel();
        }
    }
}

fn has_plugin(config: &Config) -> bool {
    config.auth_info.exec.is_some() || config.auth_info.auth_provider.is_some()
}

fn begins_a_watch(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"))
}

impl Connections {
    /// Requests are counted under `host`, which they themselves do not name.
    pub(super) fn new(config: Config, counter: RequestCounter, host: String) -> Result<Self, kube::Error> {
        let client = client(&config).map_err(discreet)?;
        Ok(Self { config, client, given_up: CancellationToken::new(), counter, host })
    }

    pub(super) fn send(&mut self, request: Request<Body>) -> impl Future<Output = kube::Result<Response<Body>>> + use<> {
        if self.given_up.is_cancelled() && !has_plugin(&self.config) {
            self.given_up = CancellationToken::new();
            match client(&self.config).map_err(discreet) {
                Ok(client) => self.client = client,
                Err(error) => {
                    tracing::warn!(error = %error, "no new connections to the seed can be made, the ones there are stay in use")
                }
            }
        }
        let client = self.client.clone();
        let pending = Pending {
            since: Instant::now(),
            given_up: self.given_up.clone(),
            counter: self.counter.clone(),
            host: self.host.clone(),
            method: request.method().clone(),
            ended: false,
            status: None,
        };
        async move {
            let answer = if begins_a_watch(&request) {
                timeout(WATCH_START, client.send(request)).await.map_err(|elapsed| kube::Error::Service(elapsed.into()))?
            } else {
                client.send(request).await
            };
            pending.ends(answer.as_ref().ok().map(Response::status));
            answer.map_err(discreet)
        }
    }
}
