//! The two small HTTP servers of an agent: metrics and health (rule 14).

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// A client has so long for the head of its request, counted from the connection or from the answer
/// before it: what hangs in the middle of a request and what keeps a connection without using it
/// end alike. As long as controller-runtime keeps idle ones, and longer than the minute after which
/// Prometheus asks again.
const REQUEST_WAIT: Duration = Duration::from_secs(90);
/// A connection lasts so long, so that a client that does not read its answer holds it for no
/// longer; longer than [`REQUEST_WAIT`].
const MAX_AGE: Duration = Duration::from_secs(120);
/// Time for an answer under way when its connection is to end; answers take milliseconds, and the
/// process has 5 s for its end (rule 85).
const LAST_ANSWER: Duration = Duration::from_secs(2);
/// The longest head of a request: several times what Prometheus, kubelets and browsers send.
const MAX_HEAD: usize = 16 << 10;
/// Connections that are open at once: those who scrape, probe and look are a handful. Of more the
/// oldest makes room, so that whoever holds all of them keeps nobody out.
const MAX_CONNECTIONS: usize = 128;
/// The wait after a connection could not be taken, as when there are no files left.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
#[error("--{flag}={address}: {problem}")]
pub(crate) struct BindError {
    flag: &'static str,
    address: String,
    problem: std::io::Error,
}

/// Listens on an address as Go writes them: `:9643` is every interface, a host may be a name, port
/// 0 is any free one. `None` for `0` or nothing, which switches the server off.
///
/// # Errors
/// When the address makes no sense or is taken.
pub(crate) async fn listen(
    flag: &'static str,
    address: &str,
) -> Result<Option<TcpListener>, BindError> {
    if ["", "0"].contains(&address) {
        return Ok(None);
    }
    let bound = if address.starts_with(':') {
        // All of IPv6 and with it IPv4, or just the latter where there is no IPv6.
        match TcpListener::bind(format!("[::]{address}")).await {
            Err(_) => TcpListener::bind(format!("0.0.0.0{address}")).await,
            bound => bound,
        }
    } else {
        TcpListener::bind(address).await
    };
    bound.map(Some).map_err(|problem| BindError {
        flag,
        address: address.to_owned(),
        problem,
    })
}

/// Serves until cancelled. Answers that are under way are finished.
pub(crate) async fn serve(listener: TcpListener, router: Router, cancelled: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            () = cancelled.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                open.retain(|connection| !connection.is_finished());
                if open.len() == MAX_CONNECTIONS
                    && let Some(oldest) = open.pop_front()
                {
                    oldest.abort();
                }
                open.push_back(connections.spawn(connection(
                    stream,
                    router.clone(),
                    cancelled.clone(),
                )));
            }
            Err(error) => {
                tracing::warn!(error = %error, "HTTP server cannot take a connection");
                cancelled.run_until_cancelled(sleep(ACCEPT_PAUSE)).await;
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, router: Router, cancelled: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(REQUEST_WAIT)
        .max_buf_size(MAX_HEAD);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    // Clients leave as they like: an error here is ordinary, and nobody needs to know.
    tokio::select! {
        _ = &mut connection => {}
        _ = timeout(MAX_AGE, cancelled.cancelled()) => {
            connection.as_mut().graceful_shutdown();
            drop(timeout(LAST_ANSWER, connection).await);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn zero_switches_a_server_off_and_other_addresses_are_as_in_go() {
        for address in ["0", ""] {
            assert!(listen("it", address).await.unwrap().is_none());
        }
        let listener = listen("it", ":0").await.unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        assert!(address.ip().is_unspecified());
        let taken = address.to_string();
        for (address, problem) in [
            (&*taken, "Address already in use"),
            ("nonsense", ""),
            (":99999", ""),
            (":x", ""),
        ] {
            let error = listen("it", address).await.unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("--it={address}: {problem}")),
                "{error}"
            );
        }
    }

    /// More than the buffers of two sockets take.
    const LARGE: usize = 32 << 20;
    const HALF: &str = "GET / HTTP/1.1\r\nhost: it\r\n";
    const WHOLE: &str = "GET / HTTP/1.1\r\nhost: it\r\n\r\n";

    /// A server that answers `/` at once, and `/large` at length.
    struct Served {
        address: SocketAddr,
        cancelled: CancellationToken,
        task: JoinHandle<()>,
    }

    impl Served {
        async fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let large = axum::routing::get(async || "a".repeat(LARGE));
            let router = Router::new().route("/", axum::routing::get(async || "fine"));
            let cancelled = CancellationToken::new();
            Self {
                address: listener.local_addr().unwrap(),
                task: tokio::spawn(serve(
                    listener,
                    router.route("/large", large),
                    cancelled.clone(),
                )),
                cancelled,
            }
        }

        /// A client that has sent this.
        async fn client(&self, sent: &str) -> TcpStream {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            stream
        }
    }

    /// Reads until the server ends the connection, and measures the time.
    async fn until_ended(mut stream: TcpStream) -> (String, Duration) {
        let (begin, mut text) = (Instant::now(), String::new());
        let read = timeout(10 * REQUEST_WAIT, stream.read_to_string(&mut text)).await;
        read.expect("the connection ends").unwrap();
        (text, begin.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_asks_for_nothing_more_is_left() {
        let server = Served::start().await;
        for (sent, answer) in [("", ""), ("GET / HT", ""), (HALF, ""), (WHOLE, "fine")] {
            let (text, waited) = until_ended(server.client(sent).await).await;
            assert!(text.ends_with(answer), "{sent:?}: {text}");
            assert!(
                waited >= REQUEST_WAIT && waited < 2 * REQUEST_WAIT,
                "{sent:?}: {waited:?}"
            );
        }
    }

    #[tokio::test]
    async fn whoever_holds_many_connections_keeps_nobody_out_and_holds_a_bounded_number() {
        const HELD: usize = 2 * MAX_CONNECTIONS;
        let server = Served::start().await;
        let mut held = Vec::new();
        for _ in 0..HELD {
            held.push(server.client(HALF).await);
        }
        let well = server
            .client(&format!("{HALF}connection: close\r\n\r\n"))
            .await;
        let answer = timeout(REQUEST_WAIT / 2, until_ended(well)).await;
        let (answer, _) = answer.expect("an answer before any of the others ends");
        assert!(answer.ends_with("fine"), "{answer}");
        let open = held.split_off(HELD + 1 - MAX_CONNECTIONS);
        for mut stream in held {
            let ended = timeout(REQUEST_WAIT / 2, stream.read(&mut [0])).await;
            let ended = ended.expect("the oldest have made room");
            assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
        }
        for stream in open {
            let kind = stream.try_read(&mut [0]).unwrap_err().kind();
            assert_eq!(kind, std::io::ErrorKind::WouldBlock, "the newest are kept");
        }
    }

    #[tokio::test]
    async fn a_head_that_is_too_long_is_refused() {
        let long = format!("{HALF}long: {}", "a".repeat(MAX_HEAD));
        let mut stream = Served::start().await.client(&long).await;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 431");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_left() {
        let server = Served::start().await;
        let begin = Instant::now();
        let mut stream = server.client(&WHOLE.replace("/ ", "/large ")).await;
        sleep(MAX_AGE + 2 * LAST_ANSWER).await;
        let mut answer = Vec::new();
        // It may have been reset.
        drop(stream.read_to_end(&mut answer).await);
        assert!(answer.len() < LARGE, "{}", answer.len());
        assert!(begin.elapsed() < 2 * MAX_AGE, "{:?}", begin.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_server_waits_for_no_client() {
        let server = Served::start().await;
        let _half = server.client("GET / HT").await;
        let kept = server.client(WHOLE).await;
        kept.readable().await.unwrap();
        sleep(Duration::from_secs(1)).await;
        server.cancelled.cancel();
        timeout(2 * LAST_ANSWER, server.task)
            .await
            .expect("it ends")
            .unwrap();
        let (answer, _) = until_ended(kept).await;
        assert!(answer.ends_with("fine"), "{answer}");
    }
}
