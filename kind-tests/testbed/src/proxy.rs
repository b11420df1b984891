//! A proxy in front of an API server, which can hold up what passes in the ways a network does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
    /// Nothing listens: new connections are refused, old ones are closed.
    Refused,
    /// What the API server answers no longer comes back, while requests still pass: half of the way
    /// is open.
    HalfOpen,
}

#[derive(Clone, Copy)]
struct ProxyRoute {
    path: ProxyMode,
    target: SocketAddr,
    /// Grows when every open connection is to be closed.
    epoch: u64,
}

/// A TCP proxy on a free port of 127.0.0.1. Dropping it closes everything.
pub struct TcpProxy {
    address: SocketAddr,
    route: watch::Sender<ProxyRoute>,
    accepted: Arc<AtomicU64>,
    _task: JoinSet<()>,
}

impl TcpProxy {
    /// Proxies to `target`.
    pub async fn start(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .context("no port for a relay")?;
        let address = listener.local_addr()?;
        let (route, receiver) = watch::channel(ProxyRoute {
            path: ProxyMode::Open,
            target,
            epoch: 0,
        });
        let accepted = Arc::default();
        let _task = JoinSet::from_iter([accept(listener, receiver, Arc::clone(&accepted))]);
        Ok(Self {
            address,
            route,
            accepted,
            _task,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what happens to connections, those that are open included.
    pub fn set(&self, path: ProxyMode) {
        self.route.send_modify(|route| route.path = path);
    }

    /// Closes every open connection; new ones are welcome.
    pub fn cut(&self) {
        self.route.send_modify(|route| route.epoch += 1);
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }
}

async fn accept(
    listener: TcpListener,
    mut route: watch::Receiver<ProxyRoute>,
    count: Arc<AtomicU64>,
) {
    let Ok(address) = listener.local_addr() else {
        return;
    };
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        let now = *route.borrow_and_update();
        if now.path == ProxyMode::Refused {
            listener = None;
        } else if listener.is_none() {
            // The port was ours a moment ago; tokio's listeners set SO_REUSEADDR, so what lingers
            // on it is no obstacle.
            listener = TcpListener::bind(address).await.ok();
        }
        let Some(open) = &listener else {
            if route.changed().await.is_err() {
                return;
            }
            continue;
        };
        tokio::select! {
            changed = route.changed() => if changed.is_err() { return },
            Some(_) = connections.join_next() => {}
            accepted = open.accept() => if let Ok((client, _)) = accepted {
                count.fetch_add(1, Ordering::Relaxed);
                connections.spawn(carry(client, route.clone()));
            }
        }
    }
}

async fn carry(mut client: TcpStream, mut route: watch::Receiver<ProxyRoute>) {
    let begin = *route.borrow_and_update();
    let mut server: Option<TcpStream> = None;
    let (mut up, mut down) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    loop {
        let now = *route.borrow_and_update();
        match now.path {
            ProxyMode::Refused => return,
            _ if now.epoch != begin.epoch => return,
            ProxyMode::Stalled => {
                if route.changed().await.is_err() {
                    return;
                }
                continue;
            }
            _ => {}
        }
        let server = match &mut server {
            Some(server) => server,
            None => match TcpStream::connect(now.target).await {
                // What is passed on piece by piece must not wait for the acknowledgement of the
                // piece before.
                Ok(stream)
                    if stream.set_nodelay(true).is_ok() && client.set_nodelay(true).is_ok() =>
                {
                    server.insert(stream)
                }
                _ => return,
            },
        };
        tokio::select! {
            changed = route.changed() => if changed.is_err() { return },
            read = client.read(&mut up) => match read {
                Ok(count) if count > 0 => {
                    if server.write_all(&up[..count]).await.is_err() { return }
                }
                _ => return,
            },
            read = server.read(&mut down) => match read {
                Ok(count) if count > 0 => {
                    if now.path == ProxyMode::Open && client.write_all(&down[..count]).await.is_err() { return }
                }
                _ => return,
            },
        }
    }
}
