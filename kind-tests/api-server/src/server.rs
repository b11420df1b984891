//! The listener, its connections, and the handle by which a test steers both.

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
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

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

/// Bytes that may be under way in a connection without a socket.
const PIPE: usize = 64 << 10;
/// How soon the port is tried again when it could not be bound again.
const REBIND_PAUSE: Duration = Duration::from_millis(50);

/// A running API server. Dropping it stops it, and ends all connections.
pub struct MemoryApi {
    shared: Arc<ServerState>,
    authority: String,
    address: SocketAddr,
}

impl Drop for MemoryApi {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

impl MemoryApi {
    /// Starts a server on a free loopback port, on the current tokio runtime.
    ///
    /// # Errors
    /// When there is no port or no certificate.
    pub async fn start(authority: &Authority, options: Options) -> Result<Self> {
        let tls = TlsAcceptor::from(authority.serve(&options.serving)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("cannot listen on loopback")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ServerState::new(options, tls));
        let admin = User::admin("admin");
        shared.tokens.grant(&shared.options.admin_token, admin);
        let stop = shared.stop.clone();
        let listen = listen(shared.clone(), address, listener);
        tokio::spawn(stop.run_until_cancelled_owned(listen));
        Ok(Self {
            shared,
            authority: authority.pem(),
            address,
        })
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
        accept(&self.shared, server);
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
        kubeconfig(url, &self.authority, token)
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
        let next = self.shared.stop.child_token();
        std::mem::replace(&mut *self.shared.cut.lock(), next).cancel();
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

/// Accepts connections, as the network lets it.
async fn listen(shared: Arc<ServerState>, address: SocketAddr, first: TcpListener) {
    let mut listener = Some(first);
    loop {
        let seen = shared.network_changes.get();
        let network = *shared.network.lock();
        match &listener {
            _ if network == Network::Refused => {
                listener = None;
                shared.network_changes.changed(seen).await;
            }
            Some(listener) => tokio::select! {
                () = shared.network_changes.changed(seen) => {}
                accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                    stream.set_nodelay(true).ok();
                    accept(&shared, stream);
                }
            },
            None => {
                listener = TcpListener::bind(address).await.ok();
                if listener.is_none() {
                    // The port is not free again yet.
                    sleep(REBIND_PAUSE).await;
                }
            }
        }
    }
}

/// Counts a new connection, and serves it until either side ends it, or it is cut.
fn accept(shared: &Arc<ServerState>, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
    let (shared, cut) = (shared.clone(), shared.cut.lock().clone());
    shared.connections.lock().accepted += 1;
    let number = shared.connections.lock().accepted;
    let serve = async move {
        shared.until_not_silent().await;
        let Ok(stream) = shared.tls.accept(stream).await else {
            return;
        };
        shared.connections.lock().handshakes += 1;
        let shared = &shared;
        let serve = |request: Request<Incoming>| handler::answer(shared, number, request);
        let served = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service_fn(serve))
            .with_upgrades();
        // Clients leave and faults cut: an error here is ordinary and concerns nobody.
        served.await.ok();
    };
    tokio::spawn(cut.run_until_cancelled_owned(serve));
}
