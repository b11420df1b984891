//! A real Kubernetes control plane out of single processes on loopback: one etcd for the test
//! process, and beside it as many API servers as wanted, each with a prefix of its own in that
//! etcd, so that one more costs an API server and no more.

mod api_server;
mod etcd;

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use tokio::net::TcpSocket;

pub use api_server::{ApiServer, ControlPlane, ForNodes, kubelet_token};
pub use etcd::Etcd;

/// Keeps a port, a free one for 0, from being given to anybody who asks for a free one, as long as
/// this lives. Connections to it are refused, and a program in Go can listen there: it sets
/// SO_REUSEADDR, too.
///
/// # Errors
/// When somebody has it.
pub fn reserve_port(port: u16) -> Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    Ok(socket)
}
