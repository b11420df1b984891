//! One connection to a shoot's API server, kept between probes.

mod connector;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::uri::{Authority, Scheme};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::Instant;

use self::connector::{Connector, connector};
use super::error::Cause;
use super::kubeconfig::{Access, KubeconfigError};
use super::resources::{FREE, Resources, Share};

const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json;q=0.9");
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("dependency-watchdog/", env!("CARGO_PKG_VERSION")));
/// What a connection reads at once, and keeps for reading while it is idle: the least that hyper
/// takes. Left to itself hyper lets this grow to the size of the answers: 75 kB a shoot with 100
/// nodes (measured), more than all else that a shoot costs.
const READ_AT_ONCE: usize = 8 << 10;

pub struct Link {
    client: Client<Connector, Empty<Bytes>>,
    server: Authority,
    prefix: String,
    headers: HeaderMap,
    resources: Arc<Resources>,
    /// When the link was made: it is replaced after a while.
    pub born: Instant,
    /// Whether it was answered before, so that its connection is a kept one.
    pub answered: bool,
    /// The length of the last list: the next one will be about as long.
    expected: usize,
}

/// A complete answer with status 200.
pub struct Answer {
    pub content_type: Option<HeaderValue>,
    pub body: Vec<u8>,
    /// Held for as long as the body is.
    _share: Share,
}

impl Link {
    /// Prepares a link; connects when first used. Each new connection resolves the host's name
    /// again.
    pub fn new(
        access: &Access,
        connect_timeout: Duration,
        resources: &Arc<Resources>,
    ) -> Result<Self, KubeconfigError> {
        let server: Uri = access
            .server
            .as_str()
            .parse()
            .map_err(|_| KubeconfigError::Invalid("cluster.server", "is not a URL"))?;
        let authority = server
            .authority()
            .ok_or(KubeconfigError::Absent("cluster.server"))?;
        let mut headers = access.headers.clone();
        headers.insert(ACCEPT, ACCEPTED);
        headers.insert(USER_AGENT, AGENT);
        let mut client = Client::builder(TokioExecutor::new());
        client
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(None)
            .http1_max_buf_size(READ_AT_ONCE);
        Ok(Self {
            client: client.build(connector(access, &server, connect_timeout, resources)?),
            server: authority.clone(),
            prefix: access.server.path().trim_end_matches('/').to_owned(),
            headers,
            resources: Arc::clone(resources),
            born: Instant::now(),
            answered: false,
            expected: 0,
        })
    }

    /// Gets a path of the API server, with its query: an answer of at most `limit` bytes. No
    /// redirect is followed.
    pub async fn get(&mut self, path: &str, limit: usize) -> Result<Answer, Cause> {
        let uri = Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(self.server.clone());
        let uri = uri
            .path_and_query([self.prefix.as_str(), path].concat())
            .build();
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri.map_err(|error| Cause::Broken(error.to_string()))?;
        request.headers_mut().clone_from(&self.headers);
        let response = self
            .client
            .request(request)
            .await
            .map_err(|error| Cause::of(&error, error.is_connect()))?;
        self.answered = true;
        check(&response)?;
        let content_type = response.headers().get(CONTENT_TYPE).cloned();
        let (body, share) =
            body(response.into_body(), self.expected, limit, &self.resources).await?;
        self.expected = body.len();
        Ok(Answer {
            content_type,
            body,
            _share: share,
        })
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

/// Reads the whole body. A kube-apiserver does not declare the length of a list; then `expected` is
/// a guess at it.
async fn body(
    mut incoming: Incoming,
    expected: usize,
    limit: usize,
    resources: &Resources,
) -> Result<(Vec<u8>, Share), Cause> {
    let declared = incoming
        .size_hint()
        .exact()
        .map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if declared.is_some_and(|length| length > limit) {
        return Err(Cause::TooLarge(limit));
    }
    // A sixteenth more than last time, since names and numbers do not stay equally long.
    let likely = declared.unwrap_or(expected + expected / 16);
    let (mut body, mut share) = (
        Vec::with_capacity(likely.min(limit).min(FREE)),
        Share::default(),
    );
    while let Some(frame) = incoming.frame().await {
        // Trailers say nothing here.
        let Ok(chunk) = frame.map_err(|error| Cause::of(&error, false))?.into_data() else {
            continue;
        };
        let length = body.len() + chunk.len();
        if length > limit {
            return Err(Cause::TooLarge(limit));
        }
        if length > body.capacity() {
            // Never by what is only declared: whoever sends nothing takes nothing from others.
            let most = if length <= FREE {
                FREE
            } else {
                declared.unwrap_or(limit)
            };
            let capacity = (2 * body.capacity()).min(most).max(length);
            resources.enlarge(&mut share, capacity).await;
            body.reserve_exact(capacity - body.len());
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, share))
}
