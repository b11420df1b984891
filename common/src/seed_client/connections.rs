//! The connections to the seed, all of them replaced once a request had to be given up.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::plugin::discreet;
use super::transport::client;
use crate::metrics::HostCounter;

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
    counter: HostCounter,
    client: Client,
    /// Cancelled when a request of this very client was given up.
    given_up: CancellationToken,
}

struct Waiting {
    since: Instant,
    given_up: CancellationToken,
    answered: bool,
}

impl Connections {
    pub(super) fn new(config: Config, counter: HostCounter) -> Result<Self, kube::Error> {
        let client = client(&config, &counter).map_err(discreet)?;
        Ok(Self { config, counter, client, given_up: CancellationToken::new() })
    }
}

impl Waiting {
    fn ends(mut self) {
        self.answered = true;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.answered && self.since.elapsed() >= GIVEN_UP_AFTER {
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

impl Service<Request<Body>> for Connections {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if self.given_up.is_cancelled() && !has_plugin(&self.config) {
            self.given_up = CancellationToken::new();
            match client(&self.config, &self.counter).map_err(discreet) {
                Ok(client) => self.client = client,
                Err(error) => {
                    tracing::warn!(error = %error, "no new connections to the seed can be made, the ones there are stay in use")
                }
            }
        }
        let client = self.client.clone();
        let waiting = Waiting { since: Instant::now(), given_up: self.given_up.clone(), answered: false };
        Box::pin(async move {
            let answer = if begins_a_watch(&request) {
                timeout(WATCH_START, client.send(request)).await.map_err(|elapsed| kube::Error::Service(elapsed.into()))?
            } else {
                client.send(request).await
            };
            // Also with an error: the connections have dealt with that themselves.
            waiting.ends();
            answer.map_err(discreet)
        })
    }
}
