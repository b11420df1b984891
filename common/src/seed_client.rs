//! The client for the seed's API server.

mod connections;
mod plugin;
mod transport;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::service_fn;

use self::connections::Connections;
use crate::metrics::RequestCounter;

/// After this time without a connection an attempt is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// After this time without a byte a connection is given up: longer than a watch lasts, since one of
/// a kind that nobody changes may have neither an event nor a bookmark. The kernel notices a dead
/// connection within 30 s; this is for a proxy that answers the kernel's probes for a server that
/// is gone.
const READ_TIMEOUT: Duration = Duration::from_secs(240);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("kubeconfig {0}")]
    Kubeconfig(String, #[source] Box<KubeconfigError>),
    /// A kubeconfig file is no YAML of a kubeconfig. The parser's message would quote its lines,
    /// credentials included.
    #[error("kubeconfig {0}: it is not YAML of a kubeconfig")]
    Unreadable(String),
    /// The URL itself may carry a password.
    #[error("kubeconfig {0}: its proxy-url is none of a proxy")]
    Proxy(String),
    /// Neither a file nor a cluster around.
    #[error("no --kubeconfig, no KUBECONFIG, not in a cluster, no $HOME/.kube/config")]
    Nowhere,
    #[error("cannot make a client")]
    Client(#[source] Box<kube::Error>),
}

impl Error {
    fn of(what: String, error: KubeconfigError) -> Self {
        match error {
            KubeconfigError::Parse(_) => Self::Unreadable(what),
            error => Self::Kubeconfig(what, Box::new(error)),
        }
    }
}

/// Finds out where the seed is, in the order of rule 10: the flag, `KUBECONFIG`, the cluster around
/// this pod, `$HOME/.kube/config`. Sends nothing yet; every request is counted.
///
/// # Errors
/// When nothing is found, or what is found cannot be used.
pub async fn connect(kubeconfig: Option<&Path>, counter: &RequestCounter) -> Result<Client, Error> {
    let access = Access::read(kubeconfig).await?;
    let namespace = access.config.default_namespace.clone();
    let connections = Connections::new(access, kubeconfig.map(Path::to_owned), counter.clone());
    let connections = Arc::new(connections.map_err(|error| Error::Client(Box::new(error)))?);
    Ok(Client::new(
        service_fn(move |request| Arc::clone(&connections).send(request)),
        namespace,
    ))
}

/// How to get to the seed, as it was read last.
#[derive(Clone)]
struct Access {
    config: Config,
    /// In the place of [`Config::proxy_url`], for which kube compares NO_PROXY with the proxy
    /// instead of the server.
    proxies: Arc<Matcher>,
}

impl Access {
    async fn read(kubeconfig: Option<&Path>) -> Result<Self, Error> {
        if let Some(path) = kubeconfig {
            return Self::from_file(path).await;
        }
        if std::env::var_os("KUBECONFIG").is_some_and(|paths| !paths.is_empty()) {
            return Self::new("named by KUBECONFIG", Kubeconfig::read()).await;
        }
        if let Ok(config) = Config::incluster() {
            return Ok(Self {
                config: tuned(config),
                proxies: Arc::new(Matcher::from_env()),
            });
        }
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".kube/config"));
        match home.filter(|path| path.exists()) {
            Some(path) => Self::from_file(&path).await,
            None => Err(Error::Nowhere),
        }
    }

    async fn from_file(path: &Path) -> Result<Self, Error> {
        Self::new(&path.display().to_string(), Kubeconfig::read_from(path)).await
    }

    async fn new(
        what: &str,
        kubeconfig: Result<Kubeconfig, KubeconfigError>,
    ) -> Result<Self, Error> {
        let failed = |error| Error::of(what.to_owned(), error);
        let kubeconfig = kubeconfig.map_err(failed)?;
        // As Go: without a proxy of its own the environment's counts, and NO_PROXY with it (rule
        // 42).
        let own = own_proxy(&kubeconfig);
        let proxies = own.as_ref().map_or_else(Matcher::from_env, |proxy| {
            Matcher::builder().all(proxy.as_str()).build()
        });
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(failed)?;
        if own.is_some() && proxies.intercept(&config.cluster_url).is_none() {
            return Err(Error::Proxy(what.to_owned()));
        }
        Ok(Self {
            config: tuned(config),
            proxies: Arc::new(proxies),
        })
    }

    /// Where the API server is, for a metric: without the user and the password that a URL may
    /// carry.
    fn host(&self) -> String {
        host(&self.config.cluster_url)
    }
}

fn tuned(mut config: Config) -> Config {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    // Whoever asks decides when to ask again: a watch, a flow and an election differ in it.
    config.default_retry = false;
    config
}

/// The proxy of the cluster that the current context names.
fn own_proxy(kubeconfig: &Kubeconfig) -> Option<String> {
    let current = kubeconfig.current_context.as_deref()?;
    let context = kubeconfig
        .contexts
        .iter()
        .find(|context| context.name == current)?
        .context
        .as_ref()?;
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|cluster| cluster.name == context.cluster)?
        .cluster
        .as_ref()?;
    cluster.proxy_url.clone().filter(|proxy| !proxy.is_empty())
}

fn host(server: &Uri) -> String {
    let port = server
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    server.host().unwrap_or_default().to_owned() + &port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_metric_shows_no_credentials() {
        for (server, shown) in [
            (
                "https://user:secret@seed.example:6443/path",
                "seed.example:6443",
            ),
            ("https://10.0.0.1", "10.0.0.1"),
            ("https://[::1]:443", "[::1]:443"),
        ] {
            assert_eq!(host(&server.parse().unwrap()), shown);
        }
    }
}
