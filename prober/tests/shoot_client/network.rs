//! The way to the API server: refused, unresolvable, silent, wrongly certified, through a proxy.

use std::net::SocketAddr;
use std::sync::Arc;

use api_server::{Authority, Network};
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::shoot::{LEASES, TOKEN, TestShoot, VERSION};

#[tokio::test]
async fn a_refused_connection_is_no_connection_and_heals() {
    for stage in ["version", "leases"] {
        let mut shoot = TestShoot::start().await;
        if stage == "leases" {
            shoot.healthy().await;
        }
        shoot.api.set_network(Network::Refused);
        assert_eq!(shoot.failed().await, (stage, "connect"));
        shoot.api.set_network(Network::Up);
        // The port may take a moment to be bound again.
        while shoot.leases().await.is_err() {}
    }
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_is_a_matter_of_dns() {
    let mut shoot = TestShoot::start().await;
    // Longer than a label of a name may be, so that no resolver has to be asked; TLS would not let
    // such a name pass.
    let server = format!("https://{}.invalid:6443", "a".repeat(64));
    shoot.lead(&server, "tls-server-name: localhost");
    assert_eq!(shoot.failed().await, ("version", "dns"));
}

#[tokio::test]
async fn a_certificate_that_does_not_fit_is_a_matter_of_tls() {
    for (name, expired, line, category) in [
        ("other.example", false, "", Some("tls")),
        ("127.0.0.1", true, "", Some("tls")),
        (
            "127.0.0.1",
            false,
            "tls-server-name: other.internal",
            Some("tls"),
        ),
        (
            "api.internal",
            false,
            "tls-server-name: 127.0.0.1",
            Some("tls"),
        ),
        (
            "api.internal",
            false,
            "tls-server-name: 'not a name'",
            Some("kubeconfig"),
        ),
        ("api.internal", false, "tls-server-name: api.internal", None),
        // An address may be a name.
        ("192.0.2.7", false, "tls-server-name: 192.0.2.7", None),
    ] {
        let mut shoot = TestShoot::certified(&[name], expired).await;
        shoot.lead(&shoot.api.url(), line);
        let failure = shoot
            .leases()
            .await
            .err()
            .map(|error| error.cause.category());
        assert_eq!(failure, category, "{name} {line}");
        let is_asked = shoot.api.requests().total() > 0;
        assert_eq!(is_asked, category.is_none(), "no credential went there");
    }
    let mut shoot = TestShoot::start().await;
    let other = Authority::new().expect("an authority").pem();
    let kubeconfig = api_server::kubeconfig(&shoot.api.url(), &other, TOKEN);
    shoot.secret.set(&kubeconfig);
    assert_eq!(shoot.failed().await, ("version", "tls"));
    assert_eq!(shoot.api.requests().total(), 0);
}

/// A proxy that leads every CONNECT to one address and keeps the heads of these.
async fn proxy(to: SocketAddr) -> (String, Arc<Mutex<Vec<String>>>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!(
        "proxy-url: http://user:word@{}",
        listener.local_addr().expect("an address")
    );
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, mut proxy) = (Arc::clone(&asked), JoinSet::new());
    proxy.spawn(async move {
        let mut tunnels = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let log = Arc::clone(&log);
            tunnels.spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    stream.read_line(&mut head).await?;
                }
                log.lock().push(head.to_lowercase());
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                copy_bidirectional(&mut stream, &mut TcpStream::connect(to).await?).await
            });
        }
    });
    (url, asked, proxy)
}

#[tokio::test]
async fn a_proxy_of_the_kubeconfig_is_used_and_resolves_the_name() {
    // Only the proxy can lead there: nothing here resolves these names.
    for (host, line) in [
        ("kubernetes.default.svc", ""),
        ("elsewhere.example", "\n    tls-server-name: localhost"),
    ] {
        let mut shoot = TestShoot::start().await;
        let (url, asked, _proxy) = proxy(shoot.api.address()).await;
        shoot.lead(&format!("https://{host}:6443"), &format!("{url}{line}"));
        shoot.healthy().await;
        shoot.healthy().await;
        let [head] = &asked.lock()[..] else {
            panic!("{host}: one CONNECT")
        };
        assert!(head.starts_with(&format!("connect {host}:6443 http/1.1\r\n")));
        let credentials = "\r\nproxy-authorization: basic dxnlcjp3b3jk\r\n";
        assert!(head.contains(credentials), "{head}");
        assert_eq!(shoot.asked(), [VERSION, LEASES, LEASES]);
    }
}

#[tokio::test]
async fn clients_do_not_share_connections() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.share(&shoot.resources.clone());
    shoot.healthy().await;
    assert_eq!(shoot.api.connections().accepted, 2);
}
