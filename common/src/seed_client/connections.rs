//! The connections to the seed, all of them made anew once a request had to be given up.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::plugin::discreet;
use super::transport::client;
use crate::metrics::HostCounter;

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

impl Connections {
    /// None is open yet; every request is counted.
    pub(super) fn new(config: Config, counter: HostCounter) -> Result<Self, kube::Error> {
        let client = client(&config, &counter).map_err(discreet)?;
        Ok(Self { config, counter, client, given_up: CancellationToken::new() })
    }
}

fn has_plugin(config: &Config) -> bool {
    config.auth_info.exec.is_some() || config.auth_info.auth_provider.is_some()
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
        let waiting = self.given_up.clone().drop_guard();
        Box::pin(async move {
            let answer = client.send(request).await;
            // Also with an error: the connections have dealt with that themselves.
            waiting.disarm();
            answer.map_err(discreet)
        })
    }
}
