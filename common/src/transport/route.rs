//! The way to one API server: what its connections are made of, and what each request carries.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::uri::Authority;
use http::{Request, Response, Uri};
use hyper::body::{Body, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use kube::Config;
use kube::client::middleware::{AuthLayer, BaseUriLayer, ExtraHeadersLayer};
use kube::client::{AuthError, ConfigExt};
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower::layer::util::Identity;
use tower::util::{BoxCloneSyncService, Either, option_layer};
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};

use super::bare_host;
use super::dialer::{Dialer, Wire};
use super::server::Server;
use super::unusable::Unusable;

/// Connects to a server. Each new connection resolves its name again.
pub(super) type Connector = BoxCloneSyncService<Uri, TokioIo<Wire>, BoxError>;
/// Sends requests to the paths of one API server. No redirect is followed.
pub type RequestSender<B> = BoxCloneSyncService<Request<B>, Response<Incoming>, BoxError>;

/// Has no `Debug`: it holds credentials.
pub struct Route {
    /// The address of the server, without the user and the password that its URL may carry.
    pub host: String,
    proxy: Option<Intercept>,
    /// `None` for plain HTTP.
    tls: Option<(TlsConnector, ServerName<'static>)>,
    server: BaseUriLayer,
    credentials: Either<AuthLayer, Identity>,
    impersonation: ExtraHeadersLayer,
}

impl Server {
    /// Reads the files that the kubeconfig names, and runs its exec plugin, for as long as that
    /// takes.
    ///
    /// # Errors
    /// If a credential, a certificate or a key cannot be had or used.
    pub fn route(self) -> Result<Arc<Route>, Unusable> {
        let Self { mut config, proxy } = self;
        let credentials = config.auth_layer()?;
        if credentials.is_some() {
            // A plugin that has given a token is not asked for a certificate again.
            (config.auth_info.exec, config.auth_info.auth_provider) = (None, None);
        }
        let authority = config.cluster_url.authority().map_or("", Authority::as_str);
        let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        Ok(Arc::new(Route {
            host: host.to_owned(),
            proxy,
            tls: tls(&config)?,
            server: config.base_uri_layer(),
            credentials: option_layer(credentials),
            impersonation: config.extra_headers_layer()?,
        }))
    }
}

/// The system's authorities are not read for a server without TLS: a system may have none.
fn tls(config: &Config) -> Result<Option<(TlsConnector, ServerName<'static>)>, Unusable> {
    if config.cluster_url.scheme_str() != Some("https") {
        return Ok(None);
    }
    let mut tls = config.rustls_client_config()?;
    // Connections are kept; what could be resumed would only be kept in memory.
    tls.resumption = Resumption::disabled();
    let name = config.tls_server_name.as_deref();
    let name = name.unwrap_or_else(|| bare_host(&config.cluster_url));
    let name = ServerName::try_from(name.to_owned()).map_err(|_| {
        Unusable::new("cluster.tls-server-name is neither a DNS name nor an IP address")
    })?;
    Ok(Some((TlsConnector::from(Arc::new(tls)), name)))
}

impl Route {
    /// Connections that are made within `limit` from the moment on at which an address is known,
    /// TLS included.
    pub fn connector(self: &Arc<Self>, dialer: &Dialer, limit: Duration) -> Connector {
        let (route, dialer) = (Arc::clone(self), dialer.clone());
        Connector::new(service_fn(move |server| {
            Arc::clone(&route).connect(dialer.clone(), server, limit)
        }))
    }

    /// Has a client send requests to the server, with the credentials.
    pub fn sender<C, B>(&self, client: Client<C, B>) -> RequestSender<B>
    where
        C: Connect + Clone + Send + Sync + 'static,
        B: Body<Data: Send, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let sender = ServiceBuilder::new()
            .map_err(without_output)
            .layer(&self.server)
            .layer(&self.credentials)
            .layer(&self.impersonation)
            .map_err(BoxError::from)
            .service(client);
        RequestSender::new(sender)
    }

    async fn connect(
        self: Arc<Self>,
        dialer: Dialer,
        server: Uri,
        limit: Duration,
    ) -> Result<TokioIo<Wire>, BoxError> {
        let first = self.proxy.as_ref().map_or(&server, Intercept::uri);
        let addresses = dialer.resolve(first).await?;
        let dial = service_fn(move |url| dialer.clone().dial(url, addresses.clone(), limit));
        let connected = timeout(limit, async {
            let wire = match &self.proxy {
                None => dial.oneshot(server).await?,
                Some(proxy) => {
                    let mut tunnel = Tunnel::new(proxy.uri().clone(), dial);
                    if let Some(credentials) = proxy.basic_auth() {
                        tunnel = tunnel.with_auth(credentials.clone());
                    }
                    tunnel.oneshot(server).await?
                }
            };
            let Some((tls, name)) = &self.tls else {
                return Ok(wire);
            };
            let secured = tls.connect(name.clone(), wire.into_inner()).await?;
            Ok(TokioIo::new(Box::new(secured) as Wire))
        });
        connected.await.map_err(io::Error::from)?
    }
}

/// kube's errors of an exec plugin quote what it printed.
fn without_output(error: BoxError) -> BoxError {
    match error.downcast::<AuthError>() {
        Ok(error) => Unusable::from(*error).into(),
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests;
