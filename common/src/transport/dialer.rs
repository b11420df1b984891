//! The first step of each connection: TCP, or whatever else carries bytes.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tower::{BoxError, ServiceExt, service_fn};

use super::{bare_host, kept_alive};

/// Maximum number of look-ups at once. Each blocks a thread until the C library gives up, which takes
/// 30 s and longer while DNS is silent; of tokio's 512 threads the others are left for what else blocks.
const LOOK_UPS: usize = 64;

/// Bytes from and to a host.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection, with TLS or below it.
pub(super) type Wire = Box<dyn Stream>;

impl Connection for Wire {
    /// The addresses that a TCP connection adds here are of no use, and would be copied with each
    /// request.
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// A name without an address.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NameError(#[from] io::Error);

type Dial = dyn Fn(Uri) -> BoxFuture<'static, io::Result<Wire>> + Send + Sync;

/// Connects to the host and port of a URL. Clones share it.
#[derive(Clone)]
pub enum Dialer {
    /// By TCP; names become addresses as the system has it.
    Tcp {
        look_ups: Arc<Semaphore>,
    },
    Other(Arc<Dial>),
}

impl Default for Dialer {
    fn default() -> Self {
        let look_ups = Arc::new(Semaphore::new(LOOK_UPS));
        Self::Tcp { look_ups }
    }
}

impl Dialer {
    /// Dials by other means than TCP.
    pub fn new<F, S>(dial: impl Fn(Uri) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self::Other(Arc::new(move |url| {
            let dialed = dial(url);
            async move { Ok(Box::new(dialed.await?) as Wire) }.boxed()
        }))
    }

    /// The addresses of a URL's host, for as long as finding them takes. None where an address is
    /// given, or TCP is not what is dialed.
    pub(super) async fn resolve(&self, url: &Uri) -> Result<Vec<SocketAddr>, NameError> {
        let host = bare_host(url);
        match self {
            Self::Tcp { look_ups } if host.parse::<IpAddr>().is_err() => {
                let host = host.to_owned();
                let look_up = move || (host.as_str(), 0).to_socket_addrs();
                Ok(block(Arc::clone(look_ups), look_up).await?.collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Connects to the host of a URL, which has these addresses. Each gets an equal part of `limit`.
    pub(super) async fn dial(
        self,
        url: Uri,
        addresses: Vec<SocketAddr>,
        limit: Duration,
    ) -> Result<TokioIo<Wire>, BoxError> {
        let wire = match self {
            Self::Tcp { .. } => {
                let known = service_fn(move |_: Name| {
                    ready(Ok::<_, Infallible>(addresses.clone().into_iter()))
                });
                let tcp = kept_alive(HttpConnector::new_with_resolver(known), limit);
                Box::new(tcp.oneshot(url).await?.into_inner())
            }
            Self::Other(dial) => dial(url).await?,
        };
        Ok(TokioIo::new(wire))
    }
}

async fn block<T: Send + 'static>(
    permits: Arc<Semaphore>,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, NameError> {
    let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
    let done = spawn_blocking(move || {
        // The thread is occupied for as long, also when nobody waits for it any more.
        let _permit = permit;
        work()
    });
    Ok(done.await.map_err(io::Error::from)??)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn look_ups_nobody_waits_for_count() {
        let permits = Arc::new(Semaphore::new(2));
        let ends = [(), ()].map(|()| {
            let (end, ended) = channel::<()>();
            let work = move || ended.recv().map_err(io::Error::other);
            let given_up = block(Arc::clone(&permits), work).now_or_never();
            assert!(given_up.is_none());
            end
        });
        assert_eq!(permits.available_permits(), 0);
        let next = block(Arc::clone(&permits), || Ok(()));
        ends[0].send(()).unwrap();
        next.await.unwrap();
    }
}
