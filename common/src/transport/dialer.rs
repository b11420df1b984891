//! The first step of each connection: TCP, or whatever else carries bytes.

use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tower::{BoxError, Service, ServiceExt, service_fn};

use super::{bare_host, kept_alive};

/// Bytes from and to a host.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection, with TLS or below it.
pub type Wire = Box<dyn Stream>;

impl Connection for Wire {
    /// The addresses that a TCP connection adds here are of no use, and would be copied with each
    /// request.
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// A connection that is being made to a host whose addresses are known.
pub(super) type Dialing = BoxFuture<'static, Result<TokioIo<Wire>, BoxError>>;
type Dial = dyn Fn(Uri, Duration) -> BoxFuture<'static, Result<Dialing, BoxError>> + Send + Sync;

/// Connects to the host and port of a URL. Clones share it.
#[derive(Clone)]
pub struct Dialer(pub(super) Arc<Dial>);

impl Dialer {
    /// Dials TCP connections whose other end the kernel asks for signs of life.
    pub fn tcp<R>(resolve: R) -> Self
    where
        R: Service<
                Name,
                Response: Iterator<Item = SocketAddr>,
                Error: Into<BoxError>,
                Future: Send,
            > + Clone
            + Send
            + Sync
            + 'static,
    {
        Self(Arc::new(move |server, limit| {
            let resolve = resolve.clone();
            let resolved = async move {
                let addresses = addresses(resolve, &server).await?;
                let known = service_fn(move |_: Name| {
                    ready(Ok::<_, Infallible>(addresses.clone().into_iter()))
                });
                let tcp = kept_alive(HttpConnector::new_with_resolver(known), limit);
                let dialing = async move {
                    let stream = tcp.oneshot(server).await?;
                    Ok(wire(stream.into_inner()))
                };
                Ok(dialing.boxed())
            };
            resolved.boxed()
        }))
    }

    /// Dials by other means.
    pub fn new<F, S>(dial: impl Fn(Uri) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        Self(Arc::new(move |server, _| {
            let dialed = dial(server);
            let dialing = async move { Ok(wire(dialed.await?)) };
            ready(Ok(dialing.boxed())).boxed()
        }))
    }

    /// Finds the addresses of a URL's host, for as long as that takes. What it returns connects to
    /// one of them: each gets an equal part of `limit`.
    pub(super) async fn dial(&self, server: Uri, limit: Duration) -> Result<Dialing, BoxError> {
        (self.0)(server, limit).await
    }
}

impl Default for Dialer {
    /// By TCP, with the system's names.
    fn default() -> Self {
        Self::tcp(GaiResolver::new())
    }
}

/// The addresses of a host that has a name. An address needs no resolver.
async fn addresses<R>(resolve: R, server: &Uri) -> Result<Vec<SocketAddr>, BoxError>
where
    R: Service<Name, Response: Iterator<Item = SocketAddr>, Error: Into<BoxError>>,
{
    let host = bare_host(server);
    if host.parse::<IpAddr>().is_ok() {
        return Ok(Vec::new());
    }
    let found = resolve.oneshot(host.parse()?).await.map_err(Into::into)?;
    Ok(found.collect())
}

fn wire(stream: impl Stream + 'static) -> TokioIo<Wire> {
    TokioIo::new(Box::new(stream))
}
