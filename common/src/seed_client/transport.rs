//! How requests travel to the seed: through kube's own layers, over TCP connections whose other end
//! the kernel asks for signs of life.
//!
//! kube's builder makes its TCP connector itself and takes no other one, so its layers are stacked
//! here as it stacks them. What it adds beside them, a log line for each failed request, is left
//! out: whoever asked says what failed.

use std::time::Duration;

use http::Uri;
use hyper_rustls::MaybeHttpsStream;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Client;
use kube::client::{Body, ConfigExt};
use tokio::net::TcpStream;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use super::SeedAccess;

/// A connection on which nothing came for this time is probed ...
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
/// ... and again after each such time ...
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// ... until as many probes have had no answer: 25 s.
const KEEPALIVE_PROBES: u32 = 3;
/// What was sent may be unacknowledged for so long. Linux goes by this for probes too, whatever
/// their number, and looks only when the next one is due: a second less than the 25 s, or it would
/// be the one after that, at 30 s.
const USER_TIMEOUT: Duration = Duration::from_secs(24);

/// What a connection reads at once, and keeps for reading while its watch is quiet: two TLS
/// records. Left to itself hyper lets it grow to 408 KiB on each connection over which a long list
/// came.
const READ_AT_ONCE: usize = 32 << 10;

/// A client without an open connection.
///
/// # Errors
/// When certificates, keys, credentials or the proxy cannot be used.
pub(super) fn client(access: &SeedAccess) -> Result<Client, kube::Error> {
    let config = &access.config;
    let tcp = tcp(HttpConnector::new(), config.connect_timeout);
    let mut connector = TimeoutConnector::new(
        config.rustls_https_connector_with_connector(proxy_connector(access, tcp)?)?,
    );
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let stack = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(
            legacy::Client::builder(TokioExecutor::new())
                .http1_max_buf_size(READ_AT_ONCE)
                .build::<_, Body>(connector),
        );
    Ok(Client::new(stack, config.default_namespace.clone()))
}

/// What the connection to the server goes over: TCP, or a proxy, itself reached by TCP or TLS.
type ProxyConnector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;

fn proxy_connector(access: &SeedAccess, tcp: HttpConnector) -> Result<ProxyConnector, kube::Error> {
    let Some(proxy) = access.proxies.intercept(&access.config.cluster_url) else {
        return Ok(ProxyConnector::new(
            tcp.map_response(MaybeHttpsStream::Http)
                .map_err(BoxError::from),
        ));
    };
    let url = proxy.uri().clone();
    match url.scheme_str() {
        Some("http" | "https") => {
            // The name that the server's certificate is to carry is not the proxy's.
            let mut config = access.config.clone();
            config.tls_server_name = None;
            let mut tunnel = Tunnel::new(url, config.rustls_https_connector_with_connector(tcp)?);
            if let Some(credentials) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(credentials.clone());
            }
            Ok(ProxyConnector::new(tunnel.map_err(BoxError::from)))
        }
        Some("socks5" | "socks5h") => {
            let mut socks = SocksV5::new(url, tcp);
            if let Some((user, password)) = proxy.raw_auth() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            Ok(ProxyConnector::new(
                socks
                    .map_response(MaybeHttpsStream::Http)
                    .map_err(BoxError::from),
            ))
        }
        // Its URL may carry a password.
        _ => Err(kube::Error::Service(
            "the proxy is neither http, https nor socks5".into(),
        )),
    }
}

/// Over HTTP/1.1 a quiet watch and a dead one look alike to everyone but the kernel.
fn tcp<R>(mut tcp: HttpConnector<R>, limit: Option<Duration>) -> HttpConnector<R> {
    tcp.enforce_http(false);
    // Each address of a name gets an equal part of it, so that one which swallows everything leaves
    // time for the next.
    tcp.set_connect_timeout(limit);
    tcp.set_keepalive(Some(KEEPALIVE_IDLE));
    tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEPALIVE_PROBES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(USER_TIMEOUT));
    tcp
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io;
    use std::net::SocketAddr;

    use hyper_util::client::legacy::connect::dns::Name;
    use rustix::net::sockopt;
    use tokio::net::{TcpListener, TcpSocket};
    use tokio::time::timeout;
    use tower::service_fn;

    use super::*;

    /// When a connection must be known to be dead, at the latest.
    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn the_kernel_gives_up_a_silent_connection_within_30_s() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let connection = tcp(HttpConnector::new(), None)
            .oneshot(server)
            .await
            .unwrap();
        let socket = connection.inner();
        assert!(sockopt::socket_keepalive(socket).unwrap());
        let (idle, interval) = (
            sockopt::tcp_keepidle(socket).unwrap(),
            sockopt::tcp_keepintvl(socket).unwrap(),
        );
        let probed = idle + interval * sockopt::tcp_keepcnt(socket).unwrap();
        assert!(probed < LIMIT, "{probed:?}");
        let unacknowledged =
            Duration::from_millis(sockopt::tcp_user_timeout(socket).unwrap().into());
        // Linux looks when a probe is due.
        assert!(
            unacknowledged > idle && unacknowledged + interval < LIMIT,
            "{unacknowledged:?}"
        );
    }

    #[tokio::test]
    async fn of_several_addresses_one_that_swallows_everything_leaves_time_for_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        let dead = SocketAddr::from(([127, 0, 0, 2], good.port()));
        let full = TcpSocket::new_v4().unwrap();
        full.bind(dead).unwrap();
        let _full = full.listen(1).unwrap();
        // Once its queue is full, what knocks gets no answer.
        let mut queued = Vec::new();
        while let Ok(stream) = timeout(Duration::from_millis(200), TcpStream::connect(dead)).await {
            queued.push(stream.unwrap());
        }
        let resolver =
            service_fn(move |_: Name| ready(Ok::<_, io::Error>([dead, good].into_iter())));
        let limit = Duration::from_secs(1);
        let connected = tcp(HttpConnector::new_with_resolver(resolver), Some(limit))
            .oneshot("http://seed.example".parse().unwrap());
        let connection = timeout(limit, connected)
            .await
            .expect("half of the time is left")
            .unwrap();
        assert_eq!(connection.inner().peer_addr().unwrap(), good);
    }
}
