//! A proxy in front of an API server, which can hold up what passes in the ways a network does.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What the proxy does with connections, old and new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyMode {
    /// Bytes pass in both directions.
    Open,
    /// New connections are accepted and nothing ever passes; old ones stay open and stand still. A
    /// route that swallows packets.
    Stalled,
    /// What the API server answers no longer comes back, while requests still pass: half of the way
    /// is open. Connections that met it end when it is over.
    HalfOpen,
}

/// A TCP proxy on a free port of 127.0.0.1. Dropping it closes everything.
pub struct TcpProxy {
    address: SocketAddr,
    route: watch::Sender<ProxyMode>,
    _task: JoinSet<()>,
}

impl TcpProxy {
    /// Proxies to `target`.
    pub async fn start(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = listener.context("no port for a relay")?;
        let address = listener.local_addr()?;
        let (route, routes) = watch::channel(ProxyMode::Open);
        let accept = async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(client, target, routes.clone()));
            }
        };
        Ok(Self {
            address,
            route,
            _task: JoinSet::from_iter([accept]),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what happens to connections, those that are open included.
    pub fn set(&self, mode: ProxyMode) {
        self.route.send_replace(mode);
    }
}

async fn carry(client: TcpStream, target: SocketAddr, mut route: watch::Receiver<ProxyMode>) {
    let Ok(server) = TcpStream::connect(target).await else {
        return;
    };
    // What is passed on piece by piece must not wait for the acknowledgement of the piece before.
    for stream in [&client, &server] {
        stream.set_nodelay(true).ok();
    }
    let routes = route.clone();
    let is_broken = async {
        let half_open = |mode: &ProxyMode| *mode == ProxyMode::HalfOpen;
        let _ = route.wait_for(half_open).await;
        let _ = route.wait_for(|mode| !half_open(mode)).await;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        _ = pass(from_client, to_server, routes.clone(), ProxyMode::HalfOpen) => {}
        _ = pass(from_server, to_client, routes, ProxyMode::Open) => {}
        () = is_broken => {}
    }
}

/// Passes bytes on while the proxy is open, or in this mode; until the connection ends.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut route: watch::Receiver<ProxyMode>,
    also: ProxyMode,
) -> Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        anyhow::ensure!(count > 0, "closed");
        let mode = route.wait_for(|mode| *mode != ProxyMode::Stalled);
        let mode = *mode.await?;
        if mode == ProxyMode::Open || mode == also {
            to.write_all(&bytes[..count]).await?;
        }
    }
}
