//! The two small HTTP servers of an agent: metrics and health (rule 14).

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// A client has so long for the head of its request, counted from the connection or from the answer before it: what hangs in the
/// middle of a request and what keeps a connection without using it end alike. As long as controller-runtime keeps idle ones, and longer
/// than the minute after which Prometheus asks again.
const REQUEST_WAIT: Duration = Duration::from_secs(90);
/// The wait after a connection could not be taken, as when there are no files left.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
#[error("--{flag}={address}: {problem}")]
pub struct BindError {
    flag: &'static str,
    address: String,
    problem: std::io::Error,
}

/// Listens on an address as Go writes them: `:9643` is every interface, a host may be a name, port 0 is any free one.
/// None for `0`, which switches the server off.
///
/// # Errors
/// When the address makes no sense or is taken.
pub async fn listen(flag: &'static str, address: &str) -> Result<Option<TcpListener>, BindError> {
    if address == "0" {
        return Ok(None);
    }
    let bound = match address.strip_prefix(':').map(str::parse::<u16>) {
        // All of IPv6 and with it IPv4, or just the latter where there is no IPv6.
        Some(Ok(port)) => TcpListener::bind(&[SocketAddr::from(([0; 16], port)), SocketAddr::from(([0; 4], port))][..]).await,
        Some(Err(_)) => Err(std::io::Error::other("its port is no number from 0 to 65535")),
        None => TcpListener::bind(address).await,
    };
    bound.map(Some).map_err(|problem| BindError { flag, address: address.to_owned(), problem })
}

/// Serves until cancelled. Answers that are under way are finished.
pub async fn serve(listener: TcpListener, router: Router, cancelled: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = cancelled.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => drop(connections.spawn(connection(stream, router.clone(), cancelled.clone()))),
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
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST_WAIT);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = std::pin::pin!(connection);
    // Clients leave as they like: an error here is ordinary, and nobody needs to know.
    tokio::select! {
        _ = &mut connection => {}
        () = cancelled.cancelled() => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::{Instant, timeout};

    use super::*;

    #[tokio::test]
    async fn zero_switches_a_server_off() {
        assert!(listen("metrics-bind-addr", "0").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn port_zero_is_any_free_port_on_every_interface() {
        let listener = listen("metrics-bind-addr", ":0").await.unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        assert!(address.port() > 0 && address.ip().is_unspecified());
    }

    #[tokio::test]
    async fn an_occupied_port_is_named_with_flag_and_address() {
        let taken = listen("metrics-bind-addr", "127.0.0.1:0").await.unwrap().unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let error = listen("metrics-bind-addr", &address).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("--metrics-bind-addr={address}: Address already in use")), "{error}");
    }

    #[tokio::test]
    async fn a_senseless_address_is_refused() {
        for address in ["", "nonsense", ":99999", ":x"] {
            assert!(listen("health-bind-addr", address).await.is_err(), "{address:?}");
        }
    }
    /// A connection to a server that answers `/` at once.
    async fn connected(cancelled: &CancellationToken) -> (TcpStream, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", axum::routing::get(async || "fine"));
        let server = tokio::spawn(serve(listener, router, cancelled.clone()));
        (TcpStream::connect(address).await.unwrap(), server)
    }

    /// What comes until the server ends the connection, and when it does.
    async fn until_ended(mut stream: TcpStream) -> (String, Duration) {
        let (begin, mut text) = (Instant::now(), String::new());
        let read = timeout(10 * REQUEST_WAIT, stream.read_to_string(&mut text)).await;
        read.expect("the connection ends").unwrap();
        (text, begin.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_half_a_request_is_left() {
        for half in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: it\r\n"] {
            let (mut stream, _server) = connected(&CancellationToken::new()).await;
            stream.write_all(half.as_bytes()).await.unwrap();
            let (_, waited) = until_ended(stream).await;
            assert!(waited >= REQUEST_WAIT && waited < 2 * REQUEST_WAIT, "{half:?}: {waited:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_keeps_its_connection_unused_is_left() {
        let (mut stream, _server) = connected(&CancellationToken::new()).await;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: it\r\n\r\n").await.unwrap();
        let (answer, waited) = until_ended(stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("fine"), "{answer}");
        assert!(waited >= REQUEST_WAIT && waited < 2 * REQUEST_WAIT, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_server_ends_connections_that_are_kept() {
        let cancelled = CancellationToken::new();
        let (mut stream, server) = connected(&cancelled).await;
        stream.write_all(b"GET / HTTP/1.1\r\nhost: it\r\n\r\n").await.unwrap();
        stream.readable().await.unwrap();
        cancelled.cancel();
        let (answer, waited) = until_ended(stream).await;
        assert!(answer.ends_with("fine") && waited < REQUEST_WAIT, "{answer} after {waited:?}");
        server.await.unwrap();
    }
}
