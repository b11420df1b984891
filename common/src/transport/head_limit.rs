//! A bound on what may come before the head of an answer. HTTP allows any number of 1xx responses
//! there, and hyper reads on for as long as they come.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use http::Response;
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Eight times the largest head that is read (32 KiB, of the seed): there must be room for what is
/// read of a body before whoever sent the request sees the head. An API server sends no 1xx response
/// to what is requested here. Go's bound is 10 MiB (`MaxResponseHeaderBytes`).
const MAX_BEFORE_BODY: usize = 256 << 10;
/// No answer is awaited.
const UNBOUNDED: usize = usize::MAX;

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
pub fn head_arrived<B>(answer: Response<B>) -> Response<B> {
    if let Some(Allowance(left)) = answer.extensions().get() {
        left.store(UNBOUNDED, Ordering::Relaxed);
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
        let rest = |left| match left {
            UNBOUNDED => Some(UNBOUNDED),
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

impl<S: Connection> Connection for HeadLimited<S> {
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
        ready!(Pin::new(&mut self.connection).poll_read(context, buffer))?;
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

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.allowance.request_sent();
        Pin::new(&mut self.connection).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const PIECE: [u8; 1024] = [b' '; 1024];

    /// A connection, its other end, and an answer over it.
    fn connected() -> (HeadLimited<DuplexStream>, DuplexStream, Response<()>) {
        let (ours, theirs) = duplex(2 * PIECE.len());
        let connection = HeadLimited::new(ours);
        let mut answer = Response::new(());
        answer.extensions_mut().insert(connection.allowance.clone());
        (connection, theirs, answer)
    }

    /// Reads so many pieces that the other end sends.
    async fn read(
        connection: &mut HeadLimited<DuplexStream>,
        theirs: &mut DuplexStream,
        pieces: usize,
    ) -> io::Result<()> {
        for _ in 0..pieces {
            theirs.write_all(&PIECE).await?;
            connection.read_exact(&mut PIECE.clone()).await?;
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_connection_breaks_when_too_much_comes_before_an_answer() {
        const ALLOWED: usize = MAX_BEFORE_BODY / PIECE.len();
        let (mut connection, mut theirs, answer) = connected();
        for _ in 0..2 {
            connection.write_all(b"GET").await.unwrap();
            read(&mut connection, &mut theirs, ALLOWED).await.unwrap();
            head_arrived(answer.clone());
            read(&mut connection, &mut theirs, 2 * ALLOWED)
                .await
                .expect("a body has any length");
        }
        connection.write_all(b"GET").await.unwrap();
        read(&mut connection, &mut theirs, ALLOWED / 2)
            .await
            .unwrap();
        connection.write_all(b" / HTTP/1.1").await.unwrap();
        let error = read(&mut connection, &mut theirs, ALLOWED)
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "more than 262144 bytes came before the head of an answer"
        );
    }
}
