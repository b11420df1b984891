//! The client for the seed's API server.

mod connections;
mod plugin;
mod transport;

use std::path::Path;
use std::time::Duration;

use http::Uri;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tower::service_fn;

use self::connections::Connections;
use crate::metrics::RequestCounter;

/// After this time without a connection an attempt is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// After this time without a byte a connection is given up. A quiet watch has a bookmark about once a minute; what does not send one,
/// or is a proxy that answers the kernel's probes for a server that is gone, costs a list every two minutes.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("kubeconfig {0}")]
    Kubeconfig(String, #[source] Box<KubeconfigError>),
    /// A kubeconfig file is no YAML of a kubeconfig. The parser's message would quote its lines, credentials included.
    #[error("kubeconfig {0}: it is not YAML of a kubeconfig")]
    Unreadable(String),
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

/// Finds out where the seed is, in the order of rule 10: the flag, `KUBECONFIG`, the cluster around this pod,
/// `$HOME/.kube/config`. Sends nothing yet; every request is counted.
///
/// # Errors
/// When nothing is found, or what is found cannot be used.
pub async fn connect(kubeconfig: Option<&Path>, counter: &RequestCounter) -> Result<Client, Error> {
    let mut config = configuration(kubeconfig).await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    config.reset_reader_on_write = true;
    // Whoever asks decides when to ask again: a watch, a flow and an election differ in it.
    config.default_retry = false;
    let (host, namespace) = (host(&config.cluster_url), config.default_namespace.clone());
    let connections = Connections::new(config, counter.clone(), host);
    let mut connections = connections.map_err(|error| Error::Client(Box::new(error)))?;
    Ok(Client::new(service_fn(move |request| connections.send(request)), namespace))
}

/// Where the API server is, for a metric: without the user and the password that a URL may carry.
fn host(server: &Uri) -> String {
    let port = server.port().map(|port| format!(":{port}")).unwrap_or_default();
    server.host().unwrap_or_default().to_owned() + &port
}

async fn configuration(kubeconfig: Option<&Path>) -> Result<Config, Error> {
    if let Some(path) = kubeconfig {
        return from_file(path).await;
    }
    if std::env::var_os("KUBECONFIG").is_some_and(|paths| !paths.is_empty()) {
        let failed = |error| Error::of("named by KUBECONFIG".to_owned(), error);
        return Config::from_kubeconfig(&KubeConfigOptions::default()).await.map_err(failed);
    }
    if let Ok(config) = Config::incluster() {
        return Ok(config);
    }
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".kube/config"));
    match home.filter(|path| path.exists()) {
        Some(path) => from_file(&path).await,
        None => Err(Error::Nowhere),
    }
}

async fn from_file(path: &Path) -> Result<Config, Error> {
    let failed = |error| Error::of(path.display().to_string(), error);
    let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_metric_shows_no_credentials() {
        for (server, shown) in [
            ("https://user:secret@seed.example:6443/path", "seed.example:6443"),
            ("https://10.0.0.1", "10.0.0.1"),
            ("https://[::1]:443", "[::1]:443"),
        ] {
            assert_eq!(host(&server.parse().unwrap()), shown);
        }
    }
}
