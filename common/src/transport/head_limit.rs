//! Bounds on the head of an answer, and on what may come before it: HTTP allows any number of 1xx
//! responses there, and hyper reads on for as long as they come.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use http::header::CONTENT_ENCODING;
use http::{Extensions, Response, StatusCode};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::legacy::{self, Builder};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tower::BoxError;

use super::tls_error::{causes, in_words};

/// The largest head of an answer that is read, in bytes: gateways add cookies of some KiB. Go's
/// bound is 10 MiB (`MaxResponseHeaderBytes`).
const MAX_HEAD: usize = 64 << 10;
/// The most lines of a head.
const MAX_LINES: usize = 1_000;
/// Four times the largest head: there must be room for what is read of a body before whoever sent
/// the request sees the head. An API server sends no 1xx response to what is requested here.
const MAX_BEFORE_BODY: usize = 4 * MAX_HEAD;
/// Bytes read at once: less than the 8 KiB with which hyper begins, since it doubles the room for
/// reading that it keeps in an idle connection whenever that is filled, up to the largest head: 75
/// kB a shoot with 100 nodes (measured), more than all else that a shoot costs.
const READ_AT_ONCE: u64 = (8 << 10) - 1;
/// No answer is awaited.
const UNBOUNDED: usize = usize::MAX;
/// No answer will be awaited any more: what follows is of another protocol, as a port-forward's.
const UPGRADED: usize = usize::MAX - 1;

/// The head of an answer is larger than any honest one.
#[derive(Debug, thiserror::Error)]
enum LargeHead {
    #[error("the head of the answer has more than {MAX_HEAD} bytes")]
    Bytes,
    #[error("the head of the answer has more than {MAX_LINES} lines")]
    Lines,
}

/// The answer is in a form that was not asked for, as gateways compress.
#[derive(Debug, thiserror::Error)]
#[error("the answer is compressed ({0}), which was not asked for")]
struct Compressed(String);

/// HTTP/1.1 over connections of this module, within the bounds on heads.
pub fn client_builder() -> Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        // Without it the age of kept connections is not by tokio's clock, and they are closed only once
        // another one is wanted.
        .pool_timer(TokioTimer::new())
        .http1_max_buf_size(MAX_HEAD)
        .http1_max_headers(MAX_LINES);
    builder
}

/// Takes the bound off the connection of a request, and says in words what failed.
///
/// # Errors
/// If there is no answer, or a successful one that is compressed.
pub fn answered<B>(answer: Result<Response<B>, legacy::Error>) -> Result<Response<B>, BoxError> {
    let answer = head_arrived(answer.map_err(explained)?);
    let encoding = answer.headers().get(CONTENT_ENCODING);
    let encoding = encoding.and_then(|value| value.to_str().ok());
    match encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        Some(encoding) if answer.status().is_success() => {
            Err(Compressed(encoding.chars().take(20).collect()).into())
        }
        _ => Ok(answer),
    }
}

fn explained(error: legacy::Error) -> BoxError {
    let is_large = |cause: &(dyn std::error::Error + 'static)| {
        let cause = cause.downcast_ref::<hyper::Error>();
        cause.is_some_and(hyper::Error::is_parse_too_large)
    };
    if !causes(&error).any(is_large) {
        return error.into();
    }
    let mut extras = Extensions::new();
    if let Some(connection) = error.connect_info() {
        connection.get_extras(&mut extras);
    }
    let left = extras
        .get()
        .map(|Allowance(left)| left.load(Ordering::Relaxed));
    match left {
        Some(left) if left > MAX_BEFORE_BODY - MAX_HEAD => LargeHead::Lines.into(),
        _ => LargeHead::Bytes.into(),
    }
}

/// A connection that breaks when more than [`MAX_BEFORE_BODY`] bytes come between a request and
/// [`head_arrived`] for its answer.
pub struct HeadLimited<S> {
    connection: S,
    allowance: Allowance,
}

/// The bytes that may still come before the head of the answer.
#[derive(Clone)]
struct Allowance(Arc<AtomicUsize>);

/// Ends the bound for the request that this is the answer to.
fn head_arrived<B>(answer: Response<B>) -> Response<B> {
    if let Some(Allowance(left)) = answer.extensions().get() {
        let rest = match answer.status() {
            StatusCode::SWITCHING_PROTOCOLS => UPGRADED,
            _ => UNBOUNDED,
        };
        left.store(rest, Ordering::Relaxed);
    }
    answer
}

impl<S> HeadLimited<S> {
    pub(super) fn new(connection: S) -> Self {
        Self {
            connection,
            allowance: Allowance(Arc::new(AtomicUsize::new(UNBOUNDED))),
        }
    }
}

impl Allowance {
    /// A request is written, perhaps not its first bytes.
    fn request_sent(&self) {
        let Self(left) = self;
        if left.load(Ordering::Relaxed) == UNBOUNDED {
            left.store(MAX_BEFORE_BODY, Ordering::Relaxed);
        }
    }

    fn take(&self, count: usize) -> io::Result<()> {
        let Self(left) = self;
        let rest = |left: usize| match left {
            UNBOUNDED | UPGRADED => Some(left),
            left => left.checked_sub(count),
        };
        match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::other(format!(
                "more than {MAX_BEFORE_BODY} bytes came before the head of an answer"
            ))),
        }
    }
}

impl<S> Connection for HeadLimited<S> {
    /// The addresses that a TCP connection adds here are of no use, and would be copied with each
    /// request.
    fn connected(&self) -> Connected {
        Connected::new().extra(self.allowance.clone())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadLimited<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let mut piece = (&mut self.connection).take(READ_AT_ONCE);
        let read = ready!(Pin::new(&mut piece).poll_read(context, buffer));
        read.map_err(|error| io::Error::new(error.kind(), in_words(error.into())))?;
        Poll::Ready(self.allowance.take(buffer.filled().len() - before))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadLimited<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.allowance.request_sent();
        Pin::new(&mut self.connection).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
