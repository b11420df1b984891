//! The way to one API server, and who this process is there.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::uri::Authority;
use http::{HeaderMap, Uri};
use hyper_rustls::{
    FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream,
};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt, service_fn};

use super::dialer::{Dialer, Wire};
use super::head_limit::HeadLimited;
use super::kubeconfig::{KubeconfigError, Pem};
use super::tls::{self, Trust};
use super::tls_error::in_words;

/// Bytes as dialed, or TLS to a proxy.
type ToProxy = MaybeHttpsStream<TokioIo<Wire>>;
/// TLS through that, or plain HTTP to the seed.
type ToServer = TokioIo<MaybeHttpsStream<ToProxy>>;
type Connection = TokioIo<HeadLimited<ToServer>>;
type Connect<C> = BoxCloneSyncService<Uri, C, BoxError>;
pub type Connector = Connect<Connection>;

/// Has no `Debug`: it holds credentials.
pub struct ServerAccess {
    pub server: Uri,
    /// The name to verify the server's certificate by, where it is not the host's.
    pub server_name: Option<ServerName<'static>>,
    pub proxy: Option<Intercept>,
    pub trust: Trust,
    pub identity: Option<Identity>,
    /// Impersonation; marked as sensitive.
    pub headers: HeaderMap,
}

/// A client certificate and its key.
#[derive(Clone)]
pub struct Identity {
    pub certificate: Pem,
    pub key: Pem,
}

impl ServerAccess {
    /// A connector that gives up after `limit`, TLS included.
    ///
    /// # Errors
    /// If a certificate or a key cannot be used.
    pub fn connector(
        &self,
        dialer: &Dialer,
        limit: Duration,
    ) -> Result<Connector, KubeconfigError> {
        let tls = match self.speaks_tls() {
            true => tls::client_config(&self.trust, self.identity.as_ref())?,
            false => tls::unused_config(),
        };
        let to_host = self.to_host(within(dialer, limit), &tls);
        let mut https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http();
        if let Some(name) = &self.server_name {
            https = https.with_server_name_resolver(FixedServerNameResolver::new(name.clone()));
        }
        // Cloned with each request, also on a kept connection.
        let https = Arc::new(https.enable_http1().wrap_connector(to_host));
        Ok(Connector::new(service_fn(move |server: Uri| {
            timeout(limit, HttpsConnector::clone(&https).oneshot(server)).map(|connected| {
                let connected = connected.unwrap_or_else(|late| Err(io::Error::from(late).into()));
                connected
                    .map(|stream| TokioIo::new(HeadLimited::new(TokioIo::new(stream))))
                    .map_err(in_words)
            })
        })))
    }

    fn speaks_tls(&self) -> bool {
        let proxy = self.proxy.as_ref().map(Intercept::uri);
        let mut urls = proxy.into_iter().chain([&self.server]);
        urls.any(|url| url.scheme_str() == Some("https"))
    }

    /// `tls` is for a proxy whose URL says https.
    fn to_host(&self, dial: Connect<TokioIo<Wire>>, tls: &ClientConfig) -> Connect<ToProxy> {
        let Some(proxy) = &self.proxy else {
            return Connect::new(dial.map_response(MaybeHttpsStream::Http));
        };
        let url = proxy.uri().clone();
        if url
            .scheme_str()
            .is_some_and(|scheme| scheme.starts_with("socks5"))
        {
            let mut socks = SocksV5::new(url, dial);
            if let Some((user, password)) = proxy.raw_auth() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            return Connect::new(socks.map_response(MaybeHttpsStream::Http).map_err(boxed));
        }
        let to_proxy = HttpsConnectorBuilder::new()
            .with_tls_config(tls.clone())
            .https_or_http()
            .enable_http1();
        let mut tunnel = Tunnel::new(url, to_proxy.wrap_connector(dial));
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        Connect::new(tunnel.map_err(boxed))
    }
}

/// The address of a server: without the user and the password that a URL may carry.
pub(crate) fn host(server: &Uri) -> String {
    let authority = server.authority().map_or("", Authority::as_str);
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    host.to_owned()
}

fn boxed(error: impl Into<BoxError>) -> BoxError {
    error.into()
}

fn within(dialer: &Dialer, limit: Duration) -> Connect<TokioIo<Wire>> {
    let dialer = dialer.clone();
    Connect::new(service_fn(move |server| {
        let dialer = dialer.clone();
        async move { dialer.dial(server, limit).await?.await }
    }))
}
