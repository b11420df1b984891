//! The listener, its connections, and the handle by which a test steers both.

use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::api::{
    access::{Access, User},
    authority::{Authority, CertificateError, Serving},
    computed::Computed,
    content::sent,
    faults::Faults,
    handler,
    reply::{Closed, Wire},
    requests::Requests,
    resource::Resource,
    shared::{Counters, Network, Shared},
    store::Store,
};

/// A client that has not finished its handshake by then is dropped.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);
/// How soon the port is tried again when it could not be bound again.
const REBIND_PAUSE: Duration = Duration::from_millis(50);

/// What a server is like.
#[derive(Clone, Debug)]
pub struct Options {
    /// Resources beside [`Resource::built_in`].
    pub resources: Vec<Resource>,
    /// How many changes watches can go back. A change keeps two versions of an object alive: small for many servers in one process.
    pub history: usize,
    /// How many requests the log keeps in full.
    pub requests_kept: usize,
    /// Whether the server refuses protobuf.
    pub json_only: bool,
    /// Bytes of a chunk, where answers come in chunks, as a kube-apiserver sends lists; none: whole, under their length.
    pub chunk: Option<usize>,
    /// How often a quiet watch gets a bookmark; about a minute on a real server.
    pub bookmark_interval: Duration,
    /// What the serving certificate says.
    pub serving: Serving,
    /// What `/version` says.
    pub git_version: String,
    /// The token of a user who may do everything.
    pub admin_token: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            resources: Vec::new(),
            history: 1024,
            requests_kept: 10_000,
            json_only: false,
            chunk: None,
            bookmark_interval: Duration::from_secs(60),
            serving: Serving::default(),
            git_version: "v1.36.3".to_owned(),
            admin_token: "admin".to_owned(),
        }
    }
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No port on loopback.
    #[error("cannot listen on loopback")]
    Listen(#[from] std::io::Error),
    /// No certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// How many connections there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Accepted so far.
    pub accepted: u64,
    /// With a finished TLS handshake so far.
    pub handshakes: u64,
    /// Open now.
    pub open: u64,
}

/// A running API server. Dropping it stops it; [`MemoryApi::shutdown`] also waits until it has.
#[derive(Debug)]
pub struct MemoryApi {
    shared: Arc<Shared>,
    authority: Authority,
    address: SocketAddr,
    task: JoinHandle<()>,
    stop: DropGuard,
}

impl MemoryApi {
    /// Starts a server on a free loopback port, on the current tokio runtime.
    ///
    /// # Errors
    /// When there is no port or no certificate.
    pub async fn start(authority: &Authority, options: Options) -> Result<Self, StartError> {
        let tls = TlsAcceptor::from(authority.serve(&options.serving)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let resources = Resource::built_in().into_iter().chain(options.resources).collect();
        let shared = Arc::new(Shared {
            store: Store::new(resources, options.history),
            access: Access::default(),
            computed: Computed::default(),
            faults: Faults::default(),
            requests: Requests::new(options.requests_kept),
            json_only: options.json_only,
            chunk: options.chunk,
            bookmark_interval: options.bookmark_interval,
            git_version: options.git_version,
            network: watch::Sender::new(Network::Up),
            counters: Counters::default(),
            cut: Mutex::default(),
        });
        shared.access.grant(&options.admin_token, User::admin("admin"));
        let stop = CancellationToken::new();
        let task = tokio::spawn(listen(shared.clone(), listener, address, tls, stop.clone()));
        Ok(Self { shared, authority: authority.clone(), address, task, stop: stop.drop_guard() })
    }

    /// Stops listening, ends all connections and waits until that is done.
    pub async fn shutdown(self) {
        drop(self.stop);
        // Only a panic inside could make this fail, and that was reported where it happened.
        self.task.await.ok();
    }

    /// Answers one request without a connection, and so in step with tokio's paused clock.
    ///
    /// # Errors
    /// Where a connection would end without an answer.
    pub async fn answer<B>(&self, request: Request<B>) -> Result<Response<Wire>, Closed>
    where
        B: Body<Data = Bytes, Error: Display> + Send + 'static,
    {
        handler::answer(&self.shared, 0, request.map(sent)).await
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// A kubeconfig for a token, with the authority's certificate inside.
    pub fn kubeconfig(&self, token: &str) -> String {
        self.kubeconfig_at(&self.url(), token)
    }

    /// The same, for a way to the server of one's own choice (a relay, a wrong host).
    pub fn kubeconfig_at(&self, url: &str, token: &str) -> String {
        kubeconfig(url, &self.authority.pem(), token)
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Tokens and rules.
    pub fn access(&self) -> &Access {
        &self.shared.access
    }

    /// Lists that are computed when they are asked for.
    pub fn computed(&self) -> &Computed {
        &self.shared.computed
    }

    /// Scripted faults.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// What was asked so far.
    pub fn requests(&self) -> &Requests {
        &self.shared.requests
    }

    /// Changes the way to the server.
    pub fn set_network(&self, network: Network) {
        self.shared.network.send_replace(network);
        if network == Network::Refused {
            self.cut_connections();
        }
    }

    /// Ends all connections that are open now.
    pub fn cut_connections(&self) {
        let mut cut = self.shared.cut.lock().expect("no panic while locked");
        std::mem::take(&mut *cut).cancel();
    }

    /// How many connections there were.
    pub fn connections(&self) -> Connections {
        let counters = &self.shared.counters;
        Connections {
            accepted: counters.accepted.load(Ordering::Relaxed),
            handshakes: counters.handshakes.load(Ordering::Relaxed),
            open: counters.open.load(Ordering::Relaxed),
        }
    }
}

/// A kubeconfig for a token; the authority is PEM text.
pub fn kubeconfig(url: &str, authority: &str, token: &str) -> String {
    let ca = BASE64_STANDARD.encode(authority);
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: it\n\
         contexts:\n- name: it\n  context:\n    cluster: it\n    user: it\n\
         clusters:\n- name: it\n  cluster:\n    server: {url}\n    certificate-authority-data: {ca}\n\
         users:\n- name: it\n  user:\n    token: {token}\n"
    )
}

/// Accepts connections until it is stopped, as the network lets it.
async fn listen(shared: Arc<Shared>, listener: TcpListener, address: SocketAddr, tls: TlsAcceptor, stop: CancellationToken) {
    let mut listener = Some(listener);
    let mut network = shared.network.subscribe();
    let mut connections = JoinSet::new();
    loop {
        let refused = *network.borrow_and_update() == Network::Refused;
        if refused {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(address).await.ok();
        }
        let accepted = async {
            match &listener {
                Some(listener) => listener.accept().await.ok(),
                None if refused => std::future::pending().await,
                // The port is not free again yet.
                None => {
                    tokio::time::sleep(REBIND_PAUSE).await;
                    None
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => break,
            changed = network.changed() => if changed.is_err() { break },
            Some(_) = connections.join_next() => {}
            accepted = accepted => if let Some((stream, _)) = accepted {
                let number = shared.counters.accepted.fetch_add(1, Ordering::Relaxed) + 1;
                let cut = shared.cut.lock().expect("no panic while locked").clone();
                connections.spawn(connection(shared.clone(), stream, tls.clone(), number, cut));
            }
        }
    }
    drop(listener);
    connections.shutdown().await;
}

/// Serves one connection until either side ends it.
async fn connection(shared: Arc<Shared>, stream: TcpStream, tls: TlsAcceptor, number: u64, cut: CancellationToken) {
    let serve = async {
        shared.until_not_silent().await;
        stream.set_nodelay(true).ok();
        let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await else {
            return;
        };
        shared.counters.handshakes.fetch_add(1, Ordering::Relaxed);
        let _open = Open::new(&shared.counters.open);
        let service = service_fn(|request: Request<Incoming>| handler::answer(&shared, number, request.map(sent)));
        // Clients leave and faults cut: an error here is ordinary and has nobody to be told to.
        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
    };
    tokio::select! {
        () = serve => {}
        () = cut.cancelled() => {}
    }
}

/// Counts a connection as open while it lives.
struct Open<'a>(&'a AtomicU64);

impl<'a> Open<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
