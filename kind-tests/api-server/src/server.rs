//! The listener, its connections, and the handle by which a test steers both.

use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::authority::Authority;
use crate::{
    access::{Tokens, User},
    computed::ComputedLists,
    faults::Faults,
    handler,
    reply::{Closed, Wire},
    requests::Requests,
    shared::{ConnectionCounts, Network, Options, ServerState},
    store::Store,
};

/// A client that has not finished its handshake by then is dropped.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);
/// Bytes that may be under way in a connection without a socket.
const PIPE: usize = 64 << 10;
/// How soon the port is tried again when it could not be bound again.
const REBIND_PAUSE: Duration = Duration::from_millis(50);

/// A running API server. Dropping it stops it; [`MemoryApi::shutdown`] also waits until it has.
pub struct MemoryApi {
    shared: Arc<ServerState>,
    authority: Authority,
    tls: TlsAcceptor,
    address: SocketAddr,
    task: JoinHandle<()>,
    stop: DropGuard,
}

impl MemoryApi {
    /// Starts a server on a free loopback port, on the current tokio runtime.
    ///
    /// # Errors
    /// When there is no port or no certificate.
    pub async fn start(authority: &Authority, options: Options) -> Result<Self> {
        let tls = TlsAcceptor::from(authority.serve(&options.serving)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ServerState::new(options));
        let admin = User::admin("admin");
        shared.tokens.grant(&shared.options.admin_token, admin);
        let stop = CancellationToken::new();
        let task = tokio::spawn(listen(
            shared.clone(),
            listener,
            address,
            tls.clone(),
            stop.clone(),
        ));
        Ok(Self {
            shared,
            authority: authority.clone(),
            tls,
            address,
            task,
            stop: stop.drop_guard(),
        })
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
        B: Body<Data = Bytes> + Send + 'static,
    {
        handler::answer(&self.shared, 0, request).await
    }

    /// Connects without a socket, and so in step with tokio's paused clock.
    ///
    /// # Errors
    /// Where nobody listens.
    pub fn dial(&self) -> io::Result<DuplexStream> {
        if *self.shared.network.lock() == Network::Refused {
            return Err(ErrorKind::ConnectionRefused.into());
        }
        let (client, server) = duplex(PIPE);
        let accepted = self.shared.accept();
        tokio::spawn(connection(
            self.shared.clone(),
            server,
            self.tls.clone(),
            accepted,
        ));
        Ok(client)
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

    /// A kubeconfig for a way to the server of one's own choice (a proxy, a wrong host).
    pub fn kubeconfig_at(&self, url: &str, token: &str) -> String {
        kubeconfig(url, &self.authority.pem(), token)
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Tokens and rules.
    pub fn access(&self) -> &Tokens {
        &self.shared.tokens
    }

    /// Lists that are computed when they are asked for.
    pub fn computed(&self) -> &ComputedLists {
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
        *self.shared.network.lock() = network;
        self.shared.network_changes.increase();
        if network == Network::Refused {
            self.cut_connections();
        }
    }

    /// Ends all connections that are open now.
    pub fn cut_connections(&self) {
        std::mem::take(&mut *self.shared.cut.lock()).cancel();
    }

    /// How many connections there were.
    pub fn connections(&self) -> ConnectionCounts {
        *self.shared.connections.lock()
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
async fn listen(
    shared: Arc<ServerState>,
    listener: TcpListener,
    address: SocketAddr,
    tls: TlsAcceptor,
    stop: CancellationToken,
) {
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        let seen = shared.network_changes.get();
        let is_refused = *shared.network.lock() == Network::Refused;
        if is_refused {
            listener = None;
        } else if listener.is_none() {
            listener = TcpListener::bind(address).await.ok();
        }
        let accepted = async {
            match &listener {
                Some(listener) => return listener.accept().await.ok(),
                None if is_refused => pending().await,
                // The port is not free again yet.
                None => sleep(REBIND_PAUSE).await,
            }
            None
        };
        tokio::select! {
            () = stop.cancelled() => break,
            () = shared.network_changes.changed(seen) => {}
            Some(_) = connections.join_next() => {}
            accepted = accepted => if let Some((stream, _)) = accepted {
                stream.set_nodelay(true).ok();
                connections.spawn(connection(shared.clone(), stream, tls.clone(), shared.accept()));
            }
        }
    }
    drop(listener);
    connections.shutdown().await;
}

/// Serves one connection until either side ends it, or it is cut.
async fn connection(
    shared: Arc<ServerState>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    tls: TlsAcceptor,
    (number, cut): (u64, CancellationToken),
) {
    let handshake = async {
        shared.until_not_silent().await;
        timeout(HANDSHAKE_LIMIT, tls.accept(stream)).await
    };
    let Some(Ok(Ok(stream))) = cut.run_until_cancelled(handshake).await else {
        return;
    };
    {
        let mut connections = shared.connections.lock();
        connections.handshakes += 1;
        connections.open += 1;
    }
    let shared = &shared;
    let serve = |request: Request<Incoming>| handler::answer(shared, number, request);
    let served = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service_fn(serve))
        .with_upgrades();
    // Clients leave and faults cut: an error here is ordinary and concerns nobody.
    cut.run_until_cancelled(served).await;
    shared.connections.lock().open -= 1;
}
