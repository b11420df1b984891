//! One connection to a shoot's API server, kept between probes.

use std::time::Duration;

use bytes::Bytes;
use common::transport::{Dialer, RequestSender, Route, http_client};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use prober_core::moment::Moment;
use tokio::time::Instant;
use tower::{Service, ServiceExt};

use super::error::Cause;
use super::wire::{ItemList, ListReader, Page};
use crate::clock::Clock;

/// A list in JSON is refused by its content type, which says more than "not acceptable".
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json;q=0.9");
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("dependency-watchdog/", env!("CARGO_PKG_VERSION")));

pub(crate) struct ApiConnection {
    sender: RequestSender<Empty<Bytes>>,
    clock: Clock,
    pub created: Instant,
    pub answered: LastAnswer,
}

/// Age of a connection's last answer, which tells how likely it lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastAnswer {
    Never,
    InEarlierProbe,
    InThisProbe,
}

/// A complete answer with status 200, as read.
pub(crate) struct ApiResponse<L> {
    /// Time of the request.
    pub sent: Moment,
    /// The length of the body.
    pub length: usize,
    pub page: Page<L>,
}

impl ApiConnection {
    /// Connects when first used, within `limit` once the name is resolved. Each new connection
    /// resolves it again.
    pub(crate) fn new(route: &Route, limit: Duration, clock: Clock, dialer: &Dialer) -> Self {
        let mut client = http_client();
        client.pool_max_idle_per_host(1).pool_idle_timeout(None);
        Self {
            sender: route.sender(client.build(route.connector(dialer, limit))),
            clock,
            created: Instant::now(),
            answered: LastAnswer::Never,
        }
    }

    /// Gets a path of the API server, with its query: an answer of at most `limit` bytes, which is
    /// read as it arrives.
    pub(crate) async fn get<L: ItemList>(
        &mut self,
        path: &str,
        limit: usize,
        reader: Box<ListReader<L>>,
    ) -> Result<ApiResponse<L>, Cause> {
        let request = Request::get(path)
            .header(ACCEPT, ACCEPTED)
            .header(USER_AGENT, AGENT)
            .body(Empty::new())
            .map_err(|error| Cause::Broken(error.to_string()))?;
        let sent = self.clock.now();
        let response = async { self.sender.ready().await?.call(request).await };
        let response = response.await.map_err(|error| Cause::of(&*error))?;
        self.answered = LastAnswer::InThisProbe;
        check(&response)?;
        reader.check_content_type(content_type(&response))?;
        let (length, page) = read(response.into_body(), limit, reader).await?;
        Ok(ApiResponse { sent, length, page })
    }
}

fn content_type(response: &Response<Incoming>) -> &str {
    let content_type = response.headers().get(CONTENT_TYPE);
    content_type
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Reads a body to its end, and tells its length.
async fn read<L: ItemList>(
    mut body: Incoming,
    limit: usize,
    mut reader: Box<ListReader<L>>,
) -> Result<(usize, Page<L>), Cause> {
    let too_large = || Cause::TooLarge(limit);
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut left = limit;
    while let Some(frame) = body.frame().await {
        // Trailers say nothing here.
        let Ok(piece) = frame.map_err(|error| Cause::of(&error))?.into_data() else {
            continue;
        };
        left = left.checked_sub(piece.len()).ok_or_else(too_large)?;
        reader.feed(&piece)?;
    }
    Ok((limit - left, reader.finish()?))
}

fn check(response: &Response<Incoming>) -> Result<(), Cause> {
    match response.status() {
        StatusCode::OK => Ok(()),
        StatusCode::UNAUTHORIZED => Err(Cause::Unauthorized),
        StatusCode::FORBIDDEN => Err(Cause::Forbidden),
        StatusCode::NOT_FOUND => Err(Cause::NotFound),
        StatusCode::GONE => Err(Cause::Gone),
        StatusCode::TOO_MANY_REQUESTS => {
            let seconds = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.trim().parse().ok());
            Err(Cause::Throttled {
                retry_after: seconds.map(Duration::from_secs),
            })
        }
        status if status.is_server_error() => Err(Cause::Server(status.as_u16())),
        status => Err(Cause::Status(status.as_u16())),
    }
}
