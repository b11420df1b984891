//! The way to a shoot's API server, by what its kubeconfig says.

use std::sync::Arc;
use std::time::Duration;

use common::transport::{Connector, ServerRoute, proxies};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use tower::service_fn;

use super::super::kubeconfig::KubeconfigError::{self, Invalid};
use super::super::kubeconfig::ShootAccess;
use super::super::resources::Resources;

/// A connector to this server that gives up after `limit`, TLS included.
pub(crate) fn connector(
    access: &ShootAccess,
    limit: Duration,
    resources: &Arc<Resources>,
) -> Result<Connector, KubeconfigError> {
    let resources = Arc::clone(resources);
    let tcp = HttpConnector::new_with_resolver(service_fn(move |name: Name| {
        let resources = Arc::clone(&resources);
        async move { resources.addresses(name.as_str()).await }
    }));
    let server_name = access.tls_server_name.clone().map(ServerName::try_from);
    let route = ServerRoute {
        server: &access.server,
        proxies: &proxies(access.proxy.as_ref().map(ToString::to_string).as_deref()),
        tls: tls(access)?,
        server_name: server_name.transpose().map_err(|_| {
            let problem = "is neither a DNS name nor an IP address";
            Invalid("cluster.tls-server-name", problem)
        })?,
        limit,
    };
    route
        .connector(tcp)
        .map_err(|_| Invalid("cluster.proxy-url", "is no usable proxy"))
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
