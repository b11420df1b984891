//! How a connection to a shoot's API server is made.
//!
//! ```text
//! TCP to the host, or [TCP, with TLS where its URL says https] to a proxy and CONNECT --> TLS with the host
//! ```

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::util::{BoxCloneSyncService, Either};
use tower::{ServiceExt, service_fn};

use super::super::kubeconfig::KubeconfigError::{self, Invalid};
use super::super::kubeconfig::ShootAccess;
use super::super::resources::Resources;

/// What is connected: plain or TLS to a proxy, and TLS through that.
type Connection = MaybeHttpsStream<MaybeHttpsStream<TokioIo<TcpStream>>>;
type AnyError = Box<dyn std::error::Error + Send + Sync>;
pub type Connector = BoxCloneSyncService<Uri, Connection, AnyError>;

/// How often a quiet connection is checked by the kernel, so that one whose other end is gone is
/// found out.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A connector to this server that gives up after `limit`, TLS included.
pub fn connector(
    access: &ShootAccess,
    limit: Duration,
    resources: &Arc<Resources>,
) -> Result<Connector, KubeconfigError> {
    let tls = tls(access)?;
    let resources = Arc::clone(resources);
    let mut tcp = HttpConnector::new_with_resolver(service_fn(move |name: Name| {
        let resources = Arc::clone(&resources);
        async move { resources.addresses(name.as_str()).await }
    }));
    tcp.enforce_http(false);
    // Each address of a name gets an equal part of it, so that one which swallows everything leaves
    // time for the next.
    tcp.set_connect_timeout(Some(limit));
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE));
    // As in Go, the environment's proxy counts if the kubeconfig names none (rule 42).
    let proxies = match &access.proxy {
        Some(proxy) => Matcher::builder().all(proxy.to_string()).build(),
        None => Matcher::from_env(),
    };
    let route = match proxies.intercept(&access.server) {
        None => Either::Left(tcp.map_response(MaybeHttpsStream::Http).map_err(boxed)),
        Some(proxy) if matches!(proxy.uri().scheme_str(), Some("http" | "https")) => {
            // Speaks TLS where the proxy's URL says so.
            let to_proxy = HttpsConnectorBuilder::new()
                .with_tls_config(tls.clone())
                .https_or_http()
                .enable_http1();
            let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy.wrap_connector(tcp));
            if let Some(credentials) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(credentials.clone());
            }
            Either::Right(tunnel.map_err(boxed))
        }
        Some(_) => return Err(Invalid("cluster.proxy-url", "is no usable proxy")),
    };
    let mut https = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only();
    if let Some(name) = &access.tls_server_name {
        let problem = "is neither a DNS name nor an IP address";
        let name = ServerName::try_from(name.clone())
            .map_err(|_| Invalid("cluster.tls-server-name", problem))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let https = https.enable_http1().wrap_connector(route);
    Ok(BoxCloneSyncService::new(service_fn(move |server: Uri| {
        let connected = timeout(limit, https.clone().oneshot(server));
        async move { connected.await.map_err(io::Error::from)? }
    })))
}

/// Gives both routes the same error type.
fn boxed(error: impl Into<AnyError>) -> AnyError {
    error.into()
}

fn tls(access: &ShootAccess) -> Result<ClientConfig, KubeconfigError> {
    let field = "cluster.certificate-authority-data or user.client-certificate-data";
    let unusable = |_| Invalid(field, "cannot be used for TLS");
    let config = match &access.authorities {
        Some(pem) => ClientConfig::builder().with_root_certificates(roots(pem)?),
        None => ClientConfig::builder()
            .with_platform_verifier()
            .map_err(unusable)?,
    };
    let mut config = match &access.identity {
        Some(pem) => {
            let (chain, key) = identity(pem)?;
            config.with_client_auth_cert(chain, key).map_err(unusable)?
        }
        None => config.with_no_client_auth(),
    };
    // Connections are kept; what could be resumed would only be kept in memory.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn roots(pem: &[u8]) -> Result<RootCertStore, KubeconfigError> {
    let unreadable = Invalid(
        "cluster.certificate-authority-data",
        "holds no certificate, or one that cannot be read",
    );
    let mut roots = RootCertStore::empty();
    let all_added = CertificateDer::pem_slice_iter(pem)
        .all(|certificate| certificate.is_ok_and(|certificate| roots.add(certificate).is_ok()));
    if all_added && !roots.is_empty() {
        Ok(roots)
    } else {
        Err(unreadable)
    }
}

fn identity(
    pem: &[u8],
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), KubeconfigError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match (chain, PrivateKeyDer::from_pem_slice(pem)) {
        (Ok(chain), Ok(key)) if !chain.is_empty() => Ok((chain, key)),
        _ => Err(Invalid(
            "user.client-certificate-data and client-key-data",
            "are no readable pair",
        )),
    }
}
