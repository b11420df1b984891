//! The client for the seed's API server.

mod connections;
mod credentials;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper_timeout::TimeoutConnector;
use kube::client::Body;
use kube::client::middleware::BaseUriLayer;
use kube::config::Cluster;
use kube::{Client, Config};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, service_fn};

use self::connections::Connections;
use self::credentials::SeedCredentials;
use crate::metrics::RequestCounter;
use crate::transport::kubeconfig::{CurrentContext, Document, Entry};
use crate::transport::{CONNECT_TIMEOUT, Dialer, Trust, answered, client_builder, host};

/// Time without a byte after which a connection is given up: longer than a watch lasts, since one
/// of a kind that nobody changes may have neither an event nor a bookmark. The kernel notices a
/// dead connection within 30 s; this is for a proxy that answers the kernel's probes for a server
/// that is gone.
const READ_TIMEOUT: Duration = Duration::from_secs(240);

/// Finds out where the seed is, in the order of rule 10: the flag, `KUBECONFIG`, the cluster around
/// this pod, `$HOME/.kube/config`. Sends nothing yet; every request is counted.
///
/// # Errors
/// When nothing is found, or what is found cannot be used.
pub async fn connect(
    dialer: Dialer,
    choice: KubeconfigChoice,
    counter: &RequestCounter,
) -> Result<Client> {
    let access = SeedAccess::read(&choice)?;
    let connections = Connections::new(access, choice, dialer, counter.clone());
    let connections = Arc::new(connections.await?);
    let send = service_fn(move |request| Arc::clone(&connections).send(request));
    // Every request names its namespace.
    Ok(Client::new(send, "default"))
}

/// The kubeconfig and its context, as far as a command line names them.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigChoice {
    pub path: Option<PathBuf>,
    /// A pod's service account is none, so that it is not looked at then, as by kubectl.
    pub context: Option<String>,
}

impl KubeconfigChoice {
    /// The current context of a kubeconfig.
    pub fn path(path: Option<&Path>) -> Self {
        Self {
            path: path.map(Path::to_owned),
            context: None,
        }
    }
}

/// Access to the seed, as it was read last.
#[derive(Clone)]
struct SeedAccess {
    context: CurrentContext,
    /// In a pod TLS is kube's.
    pod: Option<Config>,
}

/// The way to the seed, without an open connection.
#[derive(Clone)]
struct SeedRoute {
    service: BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>,
    /// The address of the seed.
    host: String,
    /// To be sent with each request.
    headers: HeaderMap,
}

impl SeedAccess {
    fn read(choice: &KubeconfigChoice) -> Result<Self> {
        let pod = || Config::incluster().ok();
        Self::find(choice, |name| std::env::var_os(name), pod)
    }

    /// The first that there is, given the environment's variables and a pod's service account.
    fn find(
        KubeconfigChoice { path, context }: &KubeconfigChoice,
        variable: impl Fn(&str) -> Option<OsString>,
        pod: impl FnOnce() -> Option<Config>,
    ) -> Result<Self> {
        let context = context.as_deref();
        if let Some(path) = path {
            return Self::of_file(path, context);
        }
        let listed = variable("KUBECONFIG").filter(|paths| !paths.is_empty());
        if let Some(paths) = &listed {
            let mut all = Vec::new();
            for path in std::env::split_paths(paths) {
                // As for client-go, a file that does not exist is none.
                let exists = path.try_exists();
                let unreadable = || format!("kubeconfig {} cannot be read", path.display());
                if exists.with_context(unreadable)? {
                    all.extend(documents(&path)?);
                }
            }
            if !all.is_empty() {
                return Self::new(&all, context);
            }
        }
        if context.is_none()
            && let Some(config) = pod()
        {
            return Ok(Self::of_pod(config));
        }
        ensure!(
            listed.is_none(),
            "KUBECONFIG names no kubeconfig that exists"
        );
        let home = variable("HOME").map(|home| Path::new(&home).join(".kube/config"));
        match home.filter(|path| path.exists()) {
            Some(path) => Self::of_file(&path, context),
            None => match context {
                Some(name) => bail!(
                    "there is no context {name:?}: no --kubeconfig, no KUBECONFIG, no $HOME/.kube/config"
                ),
                None => {
                    bail!("no --kubeconfig, no KUBECONFIG, not in a cluster, no $HOME/.kube/config")
                }
            },
        }
    }

    fn of_file(path: &Path, context: Option<&str>) -> Result<Self> {
        let documents = documents(path)?;
        ensure!(
            !documents.is_empty(),
            "kubeconfig {}: it is empty",
            path.display()
        );
        Self::new(&documents, context)
    }

    fn new(documents: &[Document], context: Option<&str>) -> Result<Self> {
        let mut context = match context {
            None => CurrentContext::of(documents)?,
            Some(name) => CurrentContext::named(documents, name)?.with_context(|| {
                let files = documents.iter().filter_map(Document::file);
                let mut files: Vec<_> = files.map(|file| file.display().to_string()).collect();
                files.dedup();
                format!(
                    "there is no context {name:?} in kubeconfig {}",
                    files.join(", ")
                )
            })?,
        };
        context.prepare_plugin()?;
        Ok(Self { context, pod: None })
    }

    fn of_pod(config: Config) -> Self {
        let cluster = Cluster {
            server: Some(config.cluster_url.to_string()),
            tls_server_name: config.tls_server_name.clone(),
            ..Cluster::default()
        };
        let context = CurrentContext {
            cluster: Entry::given("cluster", cluster),
            user: Some(Entry::given("user", config.auth_info.clone())),
        };
        Self {
            context,
            pod: Some(config),
        }
    }

    /// Leaves out kube's log line for each failed request: whoever asked says what failed. Leaves
    /// out its repetitions, too: the caller decides when to retry, since a watch, a scaling and an
    /// election differ in it.
    fn route(&self, credentials: &SeedCredentials, dialer: &Dialer) -> Result<SeedRoute> {
        let mut access = self.context.access(&["https", "http"])?;
        if let Some(identity) = &credentials.identity {
            access.identity = Some(identity.clone());
        }
        if let Some(config) = &self.pod {
            access.trust = Trust::Kube(Box::new(config.clone()));
        }
        let connector = access.connector(dialer, CONNECT_TIMEOUT)?;
        let mut connector = TimeoutConnector::new(connector);
        connector.set_read_timeout(Some(READ_TIMEOUT));
        connector.set_write_timeout(Some(READ_TIMEOUT));
        connector.set_reset_reader_on_write(true);
        let stack = ServiceBuilder::new()
            .layer(BaseUriLayer::new(access.server.clone()))
            .map_result(answered)
            .service(client_builder().build::<_, Body>(connector));
        Ok(SeedRoute {
            service: BoxCloneSyncService::new(stack),
            host: host(&access.server),
            headers: access.headers,
        })
    }
}

fn documents(path: &Path) -> Result<Vec<Document>> {
    let bytes = std::fs::read(path);
    let bytes = bytes.with_context(|| format!("kubeconfig {} cannot be read", path.display()))?;
    Ok(Document::parse(&bytes, Some(path))?)
}

#[cfg(test)]
mod tests;
