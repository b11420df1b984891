//! The way to the API server: refused, unresolvable, silent, wrongly certified, through a proxy.

use std::io;
use std::net::SocketAddr;

use api_server::{Authority, Options, Serving};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::shoot::{TOKEN, TestShoot};

#[tokio::test]
async fn a_name_that_cannot_be_resolved_is_a_matter_of_dns() {
    let mut shoot = TestShoot::start().await;
    shoot
        .tell("network refused; probe: connect at leases by ")
        .await;
    // Longer than a label of a name may be, so that no resolver has to be asked; TLS would not let
    // such a name pass.
    let server = format!("https://{}.invalid:6443", "a".repeat(64));
    shoot.lead(&server, "tls-server-name: localhost");
    shoot.tell("probe: dns at leases by ").await;
}

#[tokio::test]
async fn a_certificate_that_does_not_fit_is_a_matter_of_tls() {
    // No credential goes to another one.
    for (name, expired, line, found) in [
        ("127.0.0.1", true, "", "tls at leases by "),
        ("other.example", false, "", "tls at leases by "),
        (
            "127.0.0.1",
            false,
            "tls-server-name: api.internal",
            "tls at leases by ",
        ),
        (
            "127.0.0.1",
            false,
            "tls-server-name: 'not a name'",
            "kubeconfig at leases by ",
        ),
        (
            "api.internal",
            false,
            "tls-server-name: api.internal",
            "3 by leases/1",
        ),
    ] {
        let serving = Serving {
            names: vec![name.to_owned()],
            expired,
        };
        let options = Options {
            serving,
            ..Options::default()
        };
        let mut shoot = TestShoot::with(options).await;
        shoot.lead(&shoot.api.url(), line);
        shoot.tell(&format!("probe: {found}")).await;
    }
    let mut shoot = TestShoot::start().await;
    let other = Authority::new().expect("an authority").pem();
    let kubeconfig = api_server::kubeconfig(&shoot.api.url(), &other, TOKEN);
    shoot.set_secret(&kubeconfig);
    shoot.tell("probe: tls at leases by ").await;
}

/// A proxy that leads one CONNECT to this address and notes its head.
async fn proxy(listener: TcpListener, to: SocketAddr, head: &mut String) -> io::Result<(u64, u64)> {
    let (stream, _) = listener.accept().await?;
    let mut stream = BufReader::new(stream);
    while !head.ends_with("\r\n\r\n") {
        stream.read_line(head).await?;
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    copy_bidirectional(&mut stream, &mut TcpStream::connect(to).await?).await
}

#[tokio::test]
async fn a_proxy_of_the_kubeconfig_is_used_and_resolves_the_name() {
    let mut shoot = TestShoot::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("one");
    // Only the proxy can lead there: nothing here resolves this name.
    let line = format!("proxy-url: http://user:word@{at}");
    shoot.lead("https://kubernetes.default.svc:6443", &line);
    let (to, mut head) = (shoot.api.address(), String::new());
    tokio::select! {
        () = shoot.tell("probe: 3 by leases/1; probe: 3 by leases/1") => {}
        ended = proxy(listener, to, &mut head) => panic!("{ended:?}"),
    }
    let head = head.to_lowercase();
    assert!(head.starts_with("connect kubernetes.default.svc:6443 http/1.1\r\n"));
    let credentials = "\r\nproxy-authorization: basic dxnlcjp3b3jk\r\n";
    assert!(head.contains(credentials), "{head}");
}

#[tokio::test]
async fn clients_do_not_share_connections() {
    let mut shoot = TestShoot::start().await;
    shoot
        .tell("probe: 3 by leases/1; another client; probe: 3 by leases/2")
        .await;
}
