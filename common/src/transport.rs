//! How connections to API servers are made, to the seed's and to the shoots'.
//!
//! ```text
//! TCP to the host, or [TCP, with TLS where its URL says https] to a proxy and CONNECT or SOCKS --> TLS with the host
//! ```
//!
//! Above all of that the bytes are bounded that come before the head of an answer.
//!
//! kube's builder makes its TCP connector itself and takes no other one.

mod credential;
mod head_limit;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use http::Uri;
use http::uri::Authority;
use hyper_rustls::{
    FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream,
};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt, service_fn};

pub use self::credential::{basic, bearer, secret_header};
use self::head_limit::HeadLimited;
pub use self::head_limit::head_arrived;

/// The longest that connecting may take, TLS included. Each address of a name gets an equal part of
/// it: of two, one that swallows everything leaves half for the other.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

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

/// TCP, or TLS to a proxy.
type ToProxy = MaybeHttpsStream<TokioIo<TcpStream>>;
/// TLS through that, or plain HTTP to the seed.
type ToServer = TokioIo<MaybeHttpsStream<ToProxy>>;
type Connection = TokioIo<HeadLimited<ToServer>>;
type Connect<C> = BoxCloneSyncService<Uri, C, BoxError>;
pub type Connector = Connect<Connection>;

/// The way to one API server.
pub struct ServerRoute<'a> {
    pub server: &'a Uri,
    pub proxies: &'a Matcher,
    /// For the server, and for a proxy whose URL says https.
    pub tls: ClientConfig,
    /// The name to verify the server's certificate by, where it is not the host's.
    pub server_name: Option<ServerName<'static>>,
    /// The longest that connecting may take, TLS included.
    pub limit: Duration,
}

/// A proxy that cannot be used. Its URL is left out, since it may carry a password.
#[derive(Debug, thiserror::Error)]
#[error("the proxy is neither http, https nor socks5")]
pub struct UnusableProxy;

/// A connection that could not be made. hyper's own words, "client error (Connect)", do not say to
/// where.
#[derive(Debug, thiserror::Error)]
#[error("no connection to {address}")]
struct NoConnection {
    address: Arc<str>,
    source: BoxError,
}

/// The proxies to a server. As in Go, the environment's count, and NO_PROXY with them, if the
/// kubeconfig names none (rule 42). kube compares NO_PROXY with the proxy instead of the server.
pub fn proxies(of_kubeconfig: Option<&str>) -> Matcher {
    of_kubeconfig.map_or_else(Matcher::from_env, |proxy| {
        Matcher::builder().all(proxy).build()
    })
}

impl ServerRoute<'_> {
    /// A connector over TCP connections whose other end the kernel asks for signs of life.
    ///
    /// # Errors
    /// When there is a proxy that cannot be used.
    pub fn connector<R>(self, tcp: HttpConnector<R>) -> Result<Connector, UnusableProxy>
    where
        HttpConnector<R>: Service<Uri, Response = TokioIo<TcpStream>, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let limit = self.limit;
        let address: Arc<str> = host(self.server).into();
        let to_host = self.to_host(Connect::new(kept_alive(tcp, limit).map_err(boxed)))?;
        let mut https = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls)
            .https_or_http();
        if let Some(name) = self.server_name {
            https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
        }
        // Cloned with each request, also on a kept connection.
        let https = Arc::new(https.enable_http1().wrap_connector(to_host));
        Ok(Connector::new(service_fn(move |server: Uri| {
            let address = Arc::clone(&address);
            timeout(limit, HttpsConnector::clone(&https).oneshot(server)).map(|connected| {
                let connected = connected.unwrap_or_else(|late| Err(io::Error::from(late).into()));
                connected
                    .map(|stream| TokioIo::new(HeadLimited::new(TokioIo::new(stream))))
                    .map_err(|source| NoConnection { address, source }.into())
            })
        })))
    }

    fn to_host(&self, tcp: Connect<TokioIo<TcpStream>>) -> Result<Connect<ToProxy>, UnusableProxy> {
        let Some(proxy) = self.proxies.intercept(self.server) else {
            return Ok(Connect::new(tcp.map_response(MaybeHttpsStream::Http)));
        };
        let url = proxy.uri().clone();
        match url.scheme_str() {
            Some("http" | "https") => {
                let to_proxy = HttpsConnectorBuilder::new()
                    .with_tls_config(self.tls.clone())
                    .https_or_http()
                    .enable_http1();
                let mut tunnel = Tunnel::new(url, to_proxy.wrap_connector(tcp));
                if let Some(credentials) = proxy.basic_auth() {
                    tunnel = tunnel.with_auth(credentials.clone());
                }
                Ok(Connect::new(tunnel.map_err(boxed)))
            }
            Some("socks5" | "socks5h") => {
                let mut socks = SocksV5::new(url, tcp);
                if let Some((user, password)) = proxy.raw_auth() {
                    socks = socks.with_auth(user.to_owned(), password.to_owned());
                }
                Ok(Connect::new(
                    socks.map_response(MaybeHttpsStream::Http).map_err(boxed),
                ))
            }
            _ => Err(UnusableProxy),
        }
    }
}

/// The address of a server: without the user and the password that a URL may carry.
pub(crate) fn host(server: &Uri) -> String {
    let authority = server.authority().map_or("", Authority::as_str);
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    host.to_owned()
}

fn boxed(error: impl Into<BoxError>) -> BoxError {
    error.into()
}

/// Over HTTP/1.1 a quiet watch and a dead one look alike to everyone but the kernel.
fn kept_alive<R>(mut tcp: HttpConnector<R>, limit: Duration) -> HttpConnector<R> {
    tcp.enforce_http(false);
    // Each address of a name gets an equal part of it, so that one which swallows everything leaves
    // time for the next.
    tcp.set_connect_timeout(Some(limit));
    tcp.set_nodelay(true);
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
        let connection = kept_alive(HttpConnector::new(), LIMIT)
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
        let tcp = HttpConnector::new_with_resolver(resolver);
        let connected =
            kept_alive(tcp, CONNECT_TIMEOUT).oneshot("http://seed.example".parse().unwrap());
        let connection = timeout(Duration::from_secs(2), connected)
            .await
            .expect("the next one within a second or two")
            .unwrap();
        assert_eq!(connection.inner().peer_addr().unwrap(), good);
    }

    #[test]
    fn the_address_of_a_server_shows_no_credentials() {
        for (server, shown) in [
            (
                "https://user:secret@seed.example:6443/path",
                "seed.example:6443",
            ),
            ("https://10.0.0.1", "10.0.0.1"),
            ("https://[::1]:443", "[::1]:443"),
        ] {
            assert_eq!(host(&server.parse().unwrap()), shown);
        }
    }
}
