//! One connection to a shoot's API server, kept between probes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Certificate, Client, Identity, Proxy, Response, StatusCode, Url, redirect};
use tokio::time::Instant;

use super::error::{Cause, NameError};
use super::kubeconfig::{Access, KubeconfigError};

const ACCEPTED: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json;q=0.9");
/// No honest answer is larger: 500 nodes (one page) come to 5 MB, 5,000 leases to 1.5 MB.
const MAX_BODY: usize = 32 << 20;

/// An HTTP client with one kept connection to one API server.
pub struct Link {
    client: Client,
    server: Url,
    host: Option<HeaderValue>,
    /// When the link was made: it is replaced after a while.
    pub born: Instant,
    /// Whether a request has succeeded on it, so that its connection is a kept one.
    pub proven: bool,
}

/// A complete answer with status 200.
pub struct Answer {
    /// The value of Content-Type.
    pub content_type: String,
    /// The whole body.
    pub body: Bytes,
}

impl Link {
    /// Prepares a link; connects when first used. Each new connection resolves the host's name anew.
    ///
    /// # Errors
    /// When certificates or keys cannot be used.
    pub fn new(access: &Access, connect_timeout: Duration) -> Result<Self, KubeconfigError> {
        let mut server = access.server.clone();
        let mut headers = access.headers.clone();
        headers.insert(ACCEPT, ACCEPTED);
        let mut builder = Client::builder()
            .http1_only()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .user_agent(concat!("dependency-watchdog/", env!("CARGO_PKG_VERSION")))
            .pool_max_idle_per_host(1)
            .pool_idle_timeout(None)
            .connect_timeout(connect_timeout)
            .default_headers(headers);
        let mut host = None;
        let mut dial = Dial::default();
        if let Some(name) = &access.tls_server_name {
            // The client verifies the name in the URL, so that name goes there and the resolver leads it to the host.
            let real = server.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            host = HeaderValue::from_str(server.authority()).ok();
            let invalid = KubeconfigError::Invalid { field: "cluster.tls-server-name", problem: "is not a DNS name" };
            if name.parse::<IpAddr>().is_ok() || server.set_host(Some(name)).is_err() {
                return Err(invalid);
            }
            dial = Dial { instead: Some(real) };
        }
        builder = builder.dns_resolver(Arc::new(dial));
        if let Some(pem) = &access.authorities {
            let field = "cluster.certificate-authority-data";
            let certificates = Certificate::from_pem_bundle(pem).unwrap_or_default();
            if certificates.is_empty() {
                return Err(KubeconfigError::Invalid { field, problem: "holds no readable certificate" });
            }
            builder = builder.tls_certs_only(certificates);
        }
        if let Some(pem) = &access.identity {
            let field = "user.client-certificate-data and client-key-data";
            let identity =
                Identity::from_pem(pem).map_err(|_| KubeconfigError::Invalid { field, problem: "are no readable pair" })?;
            builder = builder.identity(identity);
        }
        if let Some(proxy) = &access.proxy {
            let field = "cluster.proxy-url";
            let proxy =
                Proxy::all(proxy.clone()).map_err(|_| KubeconfigError::Invalid { field, problem: "is no usable proxy" })?;
            builder = builder.proxy(proxy);
        }
        let client = builder.build().map_err(|_| KubeconfigError::Invalid {
            field: "cluster.certificate-authority-data or user.client-certificate-data",
            problem: "cannot be used for TLS",
        })?;
        Ok(Self { client, server, host, born: Instant::now(), proven: false })
    }

    /// Gets a path of the API server.
    ///
    /// # Errors
    /// Anything but a complete answer with status 200.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Answer, Cause> {
        let mut url = self.server.clone();
        url.set_path(&format!("{}{path}", self.server.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.client.get(url);
        if let Some(host) = &self.host {
            request = request.header(HOST, host);
        }
        let response = request.send().await.map_err(Cause::of)?;
        check(&response)?;
        let content_type =
            response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        Ok(Answer { content_type, body: body(response).await? })
    }
}

fn check(response: &Response) -> Result<(), Cause> {
    match response.status() {
        StatusCode::OK => Ok(()),
        StatusCode::UNAUTHORIZED => Err(Cause::Unauthorized),
        StatusCode::FORBIDDEN => Err(Cause::Forbidden),
        StatusCode::NOT_FOUND => Err(Cause::NotFound),
        StatusCode::GONE => Err(Cause::Gone),
        StatusCode::TOO_MANY_REQUESTS => {
            let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
            Err(Cause::Throttled { retry_after: seconds.map(Duration::from_secs) })
        }
        status if status.is_server_error() => Err(Cause::Server(status.as_u16())),
        status => Err(Cause::Status(status.as_u16())),
    }
}

async fn body(response: Response) -> Result<Bytes, Cause> {
    let declared = response.content_length().unwrap_or_default();
    if declared > MAX_BODY as u64 {
        return Err(Cause::TooLarge(MAX_BODY));
    }
    let mut body = BytesMut::with_capacity(usize::try_from(declared).unwrap_or_default());
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(Cause::of)?;
        if body.len() + chunk.len() > MAX_BODY {
            return Err(Cause::TooLarge(MAX_BODY));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Resolves names by the system's resolver; `instead` leads every name to one host.
#[derive(Default)]
struct Dial {
    instead: Option<String>,
}

impl Resolve for Dial {
    fn resolve(&self, name: Name) -> Resolving {
        let host = self.instead.clone().unwrap_or_else(|| name.as_str().to_owned());
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((host, 0)).await.map_err(NameError)?;
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
