//! One connection to a shoot's API server, kept between probes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::transport::{Dialer, RequestSender, Route, http_client};
use futures::future::BoxFuture;
use futures::{FutureExt, TryStreamExt};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use prober_core::moment::Moment;
use tokio::time::Instant;
use tower::{Service, ServiceExt};

use super::error::Cause;
use super::wire::{self, DecodeError, ItemList, Page, read_page, shortened};
use crate::clock::Clock;

/// No honest answer is larger: 200 nodes (one page) come to 2 to 3.5 MB, 5,000 leases to 2.5 MB.
const MAX_ANSWER: usize = 8 << 20;
/// A list in JSON is refused by its content type, which says more than "not acceptable".
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json;q=0.9");
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("dependency-watchdog/", env!("CARGO_PKG_VERSION")));

pub(crate) struct ApiConnection {
    sender: RequestSender<Empty<Bytes>>,
    clock: Clock,
    limit: Duration,
    pub created: Instant,
    /// Time after which a request is sent on another connection as well; `None` before the first
    /// answer.
    pub hedge: Option<Duration>,
}

impl ApiConnection {
    /// Connects when first used, within `limit` once the name is resolved. Each new connection
    /// resolves it again.
    pub(crate) fn new(route: &Arc<Route>, limit: Duration, clock: Clock, dialer: &Dialer) -> Self {
        let mut client = http_client();
        client.pool_max_idle_per_host(1).pool_idle_timeout(None);
        Self {
            sender: route.sender(client.build(route.connector(dialer, limit))),
            clock,
            limit,
            created: Instant::now(),
            hedge: None,
        }
    }

    /// Gets a path of the API server, with its query: the page behind these items, and the time of
    /// the request. An answer is read as it arrives.
    pub(crate) async fn get<L: ItemList>(
        &mut self,
        path: &str,
        items: L,
    ) -> Result<(Moment, Page<L>), Cause> {
        let request = Request::get(path)
            .header(ACCEPT, ACCEPTED)
            .header(USER_AGENT, AGENT)
            .body(Empty::new())
            .map_err(|error| Cause::Broken(error.to_string()))?;
        let sent = self.clock.now();
        let response = async { self.sender.ready().await?.call(request).await };
        let response = response.await.map_err(|error| Cause::of(&*error))?;
        // A page of nodes may take longer than in an earlier probe, as long as no connection may.
        self.hedge = Some(self.limit);
        check(&response)?;
        Ok((sent, read(response.into_body(), items).await?))
    }
}

/// Reads a body as it arrives.
fn read<L: ItemList>(body: Incoming, items: L) -> BoxFuture<'static, Result<Page<L>, DecodeError>> {
    let body = Limited::new(body, MAX_ANSWER).into_data_stream();
    let body = body.map_err(io::Error::other).into_async_read();
    read_page(body, items).boxed()
}

fn check(response: &Response<Incoming>) -> Result<(), Cause> {
    let header = |name| response.headers().get(name)?.to_str().ok();
    match response.status() {
        StatusCode::OK => {
            let content_type = header(CONTENT_TYPE).unwrap_or_default();
            if !content_type.starts_with(wire::CONTENT_TYPE) {
                return Err(DecodeError::ContentType(shortened(content_type)).into());
            }
            Ok(())
        }
        StatusCode::UNAUTHORIZED => Err(Cause::Unauthorized),
        StatusCode::FORBIDDEN => Err(Cause::Forbidden),
        StatusCode::NOT_FOUND => Err(Cause::NotFound),
        StatusCode::GONE => Err(Cause::Gone),
        StatusCode::TOO_MANY_REQUESTS => {
            let seconds = header(RETRY_AFTER).and_then(|seconds| seconds.trim().parse().ok());
            Err(Cause::Throttled {
                retry_after: seconds.map(Duration::from_secs),
            })
        }
        status if status.is_server_error() => Err(Cause::Server(status.as_u16())),
        status => Err(Cause::Status(status.as_u16())),
    }
}
