//! Connections to API servers, to the seed's and to the shoots'.
//!
//! ```text
//! kubeconfig --kube--> Server --kube's TLS and credentials--> Route --> connections of our own, requests
//!
//! name --> TCP to the host, or to a proxy and CONNECT --> TLS with the host
//! ```
//!
//! kube's builder makes its TCP connector itself and takes no other one.

mod dialer;
mod route;
mod server;
mod unusable;

use std::error::Error;
use std::io;
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Builder};
use hyper_util::rt::{TokioExecutor, TokioTimer};

pub use self::dialer::{Dialer, NameError};
pub use self::route::{RequestSender, Route};
pub use self::server::Server;
pub use self::unusable::Unusable;

/// The longest that connecting to a shoot may take once its name is resolved, TLS included. Each
/// address of a name gets an equal part of it: of two, one that swallows everything leaves half for
/// the other.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection on which nothing came for this time is probed ...
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
/// ... and again after each such time ...
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// ... until as many probes have had no answer: 25 s.
const KEEPALIVE_PROBES: u32 = 3;
/// Time that sent data may stay unacknowledged. Linux goes by this for probes too, whatever their
/// number, and looks only when the next one is due: a second less than the 25 s, or it would be the
/// one after that, at 30 s.
#[cfg(target_os = "linux")]
const USER_TIMEOUT: Duration = Duration::from_secs(24);

/// The size of a connection's buffer for reading, and the largest head of an answer: a kept connection
/// keeps it, and with a buffer that grows 75 kB of a shoot with 100 nodes (measured), more than all
/// else that a shoot costs.
const READ_BUFFER: usize = 16 << 10;

/// HTTP/1.1 over connections of this module.
pub fn http_client() -> Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        // Without it the age of kept connections is not by tokio's clock, and they are closed only once
        // another one is wanted.
        .pool_timer(TokioTimer::new())
        .http1_read_buf_exact_size(READ_BUFFER);
    builder
}

/// An error and its causes. An I/O error that wraps another one names as its source the source of
/// that one, and so hides it.
pub fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        wrapped
            .map(|wrapped| wrapped as &(dyn Error + 'static))
            .or_else(|| error.source())
    })
}

/// A URL's host, without the brackets round an address of IPv6.
fn bare_host(url: &Uri) -> &str {
    let host = url.host().unwrap_or_default();
    host.trim_start_matches('[').trim_end_matches(']')
}

/// Has the kernel tell a quiet watch from a dead one, as nobody else can over HTTP/1.1.
fn kept_alive<R>(mut tcp: HttpConnector<R>, limit: Duration) -> HttpConnector<R> {
    tcp.enforce_http(false);
    // The rest is for TLS: whoever waits for a protective write tries again after 5 s. Each address
    // of a name gets an equal part, so that one which swallows everything leaves time for the next.
    tcp.set_connect_timeout(Some(limit.min(CONNECT_TIMEOUT)));
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
    use tokio::net::{TcpListener, TcpSocket, TcpStream};
    use tokio::time::timeout;
    use tower::{ServiceExt, service_fn};

    use super::*;

    /// Latest time to know that a connection is dead.
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
}
