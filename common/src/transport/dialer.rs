//! The first step of each connection: TCP, or whatever else carries bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::TryFutureExt;
use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower::{BoxError, Service, ServiceExt, service_fn};

use super::access::Connect;
use super::kept_alive;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Bytes from and to a host, below TLS.
pub struct Wire(Box<dyn Stream>);

/// Connects to the host and port of a URL. Clones share it.
#[derive(Clone)]
pub struct Dialer(Arc<dyn Fn(Duration) -> Connect<TokioIo<Wire>> + Send + Sync>);

impl Dialer {
    /// Dials TCP connections whose other end the kernel asks for signs of life; each address of a
    /// name gets an equal part of the time.
    pub fn tcp<R>(tcp: HttpConnector<R>) -> Self
    where
        HttpConnector<R>: Service<Uri, Response = TokioIo<TcpStream>, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        Self(Arc::new(move |limit| {
            let tcp = kept_alive(tcp.clone(), limit);
            let wired = tcp.map_response(|stream| wire(stream.into_inner()));
            Connect::new(wired.map_err(Into::into))
        }))
    }

    /// Dials by other means.
    pub fn new<F, S>(dial: impl Fn(Uri) -> F + Clone + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<S>> + Send + 'static,
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let dial = service_fn(move |uri| dial(uri).map_ok(wire).map_err(BoxError::from));
        Self(Arc::new(move |_| Connect::new(dial.clone())))
    }

    /// A connector; `limit` is the time that whoever connects waits.
    pub(super) fn within(&self, limit: Duration) -> Connect<TokioIo<Wire>> {
        self.0(limit)
    }
}

impl Default for Dialer {
    /// By TCP, with the system's names.
    fn default() -> Self {
        Self::tcp(HttpConnector::new())
    }
}

fn wire(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> TokioIo<Wire> {
    TokioIo::new(Wire(Box::new(stream)))
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
