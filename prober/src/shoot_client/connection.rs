//! One connection to a shoot's API server, kept between probes.

mod connector;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::transport::{Connector, head_arrived};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use prober_core::moment::Moment;
use tokio::time::Instant;

use self::connector::connector;
use super::error::Cause;
use super::kubeconfig::{KubeconfigError, ShootAccess};
use super::resources::{ORDINARY_BODY, Resources, STEP, Steps};
use crate::clock::Clock;

const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json;q=0.9");
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("dependency-watchdog/", env!("CARGO_PKG_VERSION")));
/// What a connection reads at once, and keeps for reading while it is idle: the least that hyper
/// takes. Left to itself hyper lets this grow to the size of the answers: 75 kB a shoot with 100
/// nodes (measured), more than all else that a shoot costs.
const READ_AT_ONCE: usize = 8 << 10;

pub struct ApiConnection {
    client: Client<Connector, Empty<Bytes>>,
    server: Uri,
    headers: HeaderMap,
    clock: Clock,
    resources: Arc<Resources>,
    pub created: Instant,
    /// Whether it was answered before, so that the TCP connection is a kept one.
    pub answered: bool,
    /// The length of the last body: the next one will be about as long.
    last_length: usize,
}

/// A complete answer with status 200.
pub struct ApiResponse {
    /// When the request was sent.
    pub sent: Moment,
    content_type: Option<HeaderValue>,
    pub body: Vec<u8>,
    _steps: Steps,
}

impl ApiResponse {
    pub fn content_type(&self) -> &str {
        let content_type = self.content_type.as_ref();
        content_type
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

impl ApiConnection {
    /// Connects when first used. Each new connection resolves the host's name again.
    pub fn new(
        access: ShootAccess,
        connect_timeout: Duration,
        clock: Clock,
        resources: Arc<Resources>,
    ) -> Result<Self, KubeconfigError> {
        let mut client = Client::builder(TokioExecutor::new());
        client
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(None)
            .http1_max_buf_size(READ_AT_ONCE);
        let connector = connector(&access, connect_timeout, &resources)?;
        let mut headers = access.headers;
        headers.insert(ACCEPT, ACCEPTED);
        headers.insert(USER_AGENT, AGENT);
        Ok(Self {
            client: client.build(connector),
            server: access.server,
            headers,
            clock,
            resources,
            created: Instant::now(),
            answered: false,
            last_length: 0,
        })
    }

    /// Gets a path of the API server, with its query: an answer of at most `limit` bytes. No
    /// redirect is followed.
    pub async fn get(&mut self, path: &str, limit: usize) -> Result<ApiResponse, Cause> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = self
            .uri(path)
            .map_err(|error| Cause::Broken(error.to_string()))?;
        request.headers_mut().clone_from(&self.headers);
        let sent = self.clock.now();
        let response = self
            .client
            .request(request)
            .await
            .map(head_arrived)
            .map_err(|error| Cause::of(&error, error.is_connect()))?;
        self.answered = true;
        check(&response)?;
        let content_type = response.headers().get(CONTENT_TYPE).cloned();
        let (body, steps) = self.read(response.into_body(), limit).await?;
        self.last_length = body.len();
        Ok(ApiResponse {
            sent,
            content_type,
            body,
            _steps: steps,
        })
    }

    fn uri(&self, path: &str) -> Result<Uri, http::Error> {
        let prefix = self.server.path().trim_end_matches('/');
        let mut parts = self.server.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from([prefix, path].concat())?);
        Ok(Uri::from_parts(parts)?)
    }

    /// Reads the whole body. A kube-apiserver does not declare the length of a list; then that of
    /// the last one is a guess at it.
    async fn read(&self, mut incoming: Incoming, limit: usize) -> Result<(Vec<u8>, Steps), Cause> {
        let declared = usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX);
        if declared > limit {
            return Err(Cause::TooLarge(limit));
        }
        // A sixteenth more than last time, since names and numbers do not stay equally long.
        let likely = match declared {
            0 => self.last_length + self.last_length / 16,
            declared => declared,
        };
        let mut body = Vec::with_capacity(likely.min(limit).min(ORDINARY_BODY));
        let mut steps = None;
        while let Some(frame) = incoming.frame().await {
            // Trailers say nothing here.
            let Ok(chunk) = frame.map_err(|error| Cause::of(&error, false))?.into_data() else {
                continue;
            };
            let length = body.len() + chunk.len();
            if length > limit {
                return Err(Cause::TooLarge(limit));
            }
            if body.capacity() < length && length <= ORDINARY_BODY {
                let capacity = (2 * body.capacity()).clamp(length, ORDINARY_BODY);
                body.reserve_exact(capacity - body.len());
            }
            // Never by what is only declared: who sends nothing takes nothing from others.
            while length > body.capacity().max(ORDINARY_BODY) {
                self.resources.add_step(&mut steps).await;
                let capacity = body.capacity().max(ORDINARY_BODY) + STEP;
                body.reserve_exact(capacity - body.len());
            }
            body.extend_from_slice(&chunk);
        }
        Ok((body, steps))
    }
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
