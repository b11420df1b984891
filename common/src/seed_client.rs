//! The client for the seed's API server.

mod connections;
mod credentials;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use rustls::pki_types::ServerName;
use tower::{BoxError, ServiceBuilder, service_fn};

use self::connections::Connections;
use self::credentials::SeedCredentials;
use crate::metrics::RequestCounter;
use crate::transport::{CONNECT_TIMEOUT, Connector, ServerRoute, head_arrived, proxies};

/// After this time without a byte a connection is given up: longer than a watch lasts, since one of
/// a kind that nobody changes may have neither an event nor a bookmark. The kernel notices a dead
/// connection within 30 s; this is for a proxy that answers the kernel's probes for a server that
/// is gone.
const READ_TIMEOUT: Duration = Duration::from_secs(240);

/// What a connection reads at once, and keeps for reading while its watch is quiet: two TLS
/// records. Left to itself hyper lets it grow to 408 KiB on each connection over which a long list
/// came.
const READ_AT_ONCE: usize = 32 << 10;

/// Finds out where the seed is, in the order of rule 10: the flag, `KUBECONFIG`, the cluster around
/// this pod, `$HOME/.kube/config`. Sends nothing yet; every request is counted.
///
/// # Errors
/// When nothing is found, or what is found cannot be used.
pub async fn connect(kubeconfig: Option<&Path>, counter: &RequestCounter) -> Result<Client> {
    let access = SeedAccess::read(kubeconfig).await?;
    let namespace = access.config.default_namespace.clone();
    let connections = Connections::new(access, kubeconfig.map(Path::to_owned), counter.clone())
        .await
        .context("cannot make a client")?;
    let connections = Arc::new(connections);
    let send = service_fn(move |request| Arc::clone(&connections).send(request));
    Ok(Client::new(send, namespace))
}

/// How to get to the seed, as it was read last.
#[derive(Clone)]
struct SeedAccess {
    config: Config,
    /// In the place of [`Config::proxy_url`], for which kube compares NO_PROXY with the proxy
    /// instead of the server.
    proxies: Arc<Matcher>,
}

impl SeedAccess {
    async fn read(kubeconfig: Option<&Path>) -> Result<Self> {
        if let Some(path) = kubeconfig {
            return Self::from_file(path).await;
        }
        if std::env::var_os("KUBECONFIG").is_some_and(|paths| !paths.is_empty()) {
            return Self::new("named by KUBECONFIG", Kubeconfig::read()).await;
        }
        if let Ok(config) = Config::incluster() {
            return Ok(Self {
                config,
                proxies: Arc::new(proxies(None)),
            });
        }
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".kube/config"));
        match home.filter(|path| path.exists()) {
            Some(path) => Self::from_file(&path).await,
            None => {
                bail!("no --kubeconfig, no KUBECONFIG, not in a cluster, no $HOME/.kube/config")
            }
        }
    }

    async fn from_file(path: &Path) -> Result<Self> {
        Self::new(&path.display().to_string(), Kubeconfig::read_from(path)).await
    }

    async fn new(
        what: &str,
        kubeconfig: std::result::Result<Kubeconfig, KubeconfigError>,
    ) -> Result<Self> {
        let failed = |error| match error {
            // The parser's message would quote the file's lines, credentials included.
            KubeconfigError::Parse(_) => {
                anyhow!("kubeconfig {what}: it is not YAML of a kubeconfig")
            }
            error => anyhow!(error).context(format!("kubeconfig {what}")),
        };
        let kubeconfig = kubeconfig.map_err(failed)?;
        let own = own_proxy(&kubeconfig);
        let proxies = proxies(own.as_deref());
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(failed)?;
        let server = &config.cluster_url;
        let scheme = server.scheme_str();
        if !matches!(scheme, Some("http" | "https")) || server.host().is_none_or(str::is_empty) {
            // kube would panic with the first request. The URL itself may carry a password.
            bail!(
                "kubeconfig {what}: cluster.server is no URL with http:// or https:// and a host"
            );
        }
        if own.is_some() && proxies.intercept(&config.cluster_url).is_none() {
            bail!("kubeconfig {what}: its proxy-url is none of a proxy");
        }
        Ok(Self {
            config,
            proxies: Arc::new(proxies),
        })
    }

    /// A client without an open connection, of kube's own layers, apart from `Authorization`. A log line for each failed
    /// request, which kube adds to them, is left out: whoever asked says what failed. So are
    /// repetitions: the caller decides when to retry, since a watch, a flow and an election differ
    /// in it.
    fn client(&self, credentials: &SeedCredentials) -> Result<Client, kube::Error> {
        let mut config = self.config.clone();
        credentials.apply(&mut config.auth_info);
        let mut connector = TimeoutConnector::new(self.connector(&config)?);
        connector.set_read_timeout(Some(READ_TIMEOUT));
        connector.set_write_timeout(config.write_timeout);
        connector.set_reset_reader_on_write(true);
        let stack = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .layer(config.extra_headers_layer()?)
            .map_err(BoxError::from)
            .map_response(head_arrived)
            .service(
                legacy::Client::builder(TokioExecutor::new())
                    .http1_max_buf_size(READ_AT_ONCE)
                    .build::<_, Body>(connector),
            );
        Ok(Client::new(stack, config.default_namespace))
    }

    fn connector(&self, config: &Config) -> Result<Connector, kube::Error> {
        let server_name = config.tls_server_name.clone();
        let server_name = server_name.map(ServerName::try_from).transpose();
        let route = ServerRoute {
            server: &config.cluster_url,
            proxies: &self.proxies,
            tls: config.rustls_client_config()?,
            server_name: server_name.map_err(|error| kube::Error::Service(error.into()))?,
            limit: CONNECT_TIMEOUT,
        };
        route
            .connector(HttpConnector::new())
            .map_err(|error| kube::Error::Service(error.into()))
    }
}

/// The proxy of the cluster that the current context names.
fn own_proxy(kubeconfig: &Kubeconfig) -> Option<String> {
    let current = kubeconfig.current_context.as_deref()?;
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts.find(|context| context.name == current)?;
    let cluster_name = &context.context.as_ref()?.cluster;
    let mut clusters = kubeconfig.clusters.iter();
    let cluster = clusters.find(|cluster| cluster.name == *cluster_name)?;
    let proxy = cluster.cluster.as_ref()?.proxy_url.clone();
    proxy.filter(|proxy| !proxy.is_empty())
}
