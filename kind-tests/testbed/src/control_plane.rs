//! A real Kubernetes control plane out of single processes on loopback: one etcd for the test
//! process, and beside it as many API servers as wanted, each with a prefix of its own in that
//! etcd, so that one more costs an API server and no more.

mod api_server;
mod baseline;
mod controller_manager;
mod etcd;

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

use tokio::net::TcpSocket;

pub use self::api_server::{ApiServer, ControlPlane, ForNodes, kubelet_token};
pub use baseline::Baseline;
pub use controller_manager::ControllerManager;
pub use etcd::Etcd;

/// How often a server is restarted on other ports when it ended before it was ready. A port that
/// was free when it was asked for may be taken by the time it is bound.
const TRIES: usize = 3;

/// Keeps a port from being given to anybody who asks for a free one, as long as this lives.
/// Connections to it are refused, and a program in Go can listen there: it sets SO_REUSEADDR, too.
///
/// # Errors
/// When somebody has it.
pub fn reserve_port(port: u16) -> Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket
        .bind((Ipv4Addr::LOCALHOST, port).into())
        .with_context(|| format!("port {port} is taken"))?;
    Ok(socket)
}

/// Ports of loopback that nobody listens on, each another one.
///
/// # Errors
/// When there are none.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    // All are held until all are known, so that they differ.
    let mut listeners = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}
