//! The way to the API server: refused, unresolvable, silent, wrongly certified, through a proxy.

use std::sync::Arc;
use std::time::Duration;

use api_server::{Authority, MemoryApi, Network, Options, Serving};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::shoot::{LEASES, TOKEN, TestShoot, VERSION};

#[tokio::test]
async fn a_refused_connection_is_no_connection_and_heals() {
    let mut shoot = TestShoot::start().await;
    shoot.api.set_network(Network::Refused);
    assert_eq!(shoot.failed().await, ("version", "connect"));
    shoot.api.set_network(Network::Up);
    // The port may take a moment to be bound again.
    let healed = async { while shoot.leases().await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(20), healed)
        .await
        .expect("it heals");
}

#[tokio::test]
async fn a_kept_connection_to_a_server_that_went_away_is_no_connection() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    shoot.api.set_network(Network::Refused);
    assert_eq!(shoot.failed().await, ("leases", "connect"));
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_is_a_matter_of_dns() {
    let mut shoot = TestShoot::start().await;
    // Longer than a label of a name may be, so that no resolver has to be asked; TLS would not let
    // such a name pass.
    let server = format!("https://{}.invalid:6443", "a".repeat(64));
    let kubeconfig = shoot.api.kubeconfig_at(&server, TOKEN);
    shoot
        .secret
        .set(&kubeconfig.replace("    server:", "    tls-server-name: localhost\n    server:"));
    assert_eq!(shoot.failed().await, ("version", "dns"));
}

#[tokio::test]
async fn silence_ends_with_the_budget_of_a_connection() {
    let mut shoot = TestShoot::start().await;
    shoot.timeout = Duration::from_millis(400);
    shoot.api.set_network(Network::Silent);
    assert_eq!(shoot.failed().await, ("version", "timeout"));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_a_matter_of_tls() {
    let serving = Serving {
        names: vec!["other.example".to_owned()],
        ..Serving::default()
    };
    let mut shoot = TestShoot::with(Options {
        serving,
        ..Options::default()
    })
    .await;
    assert_eq!(shoot.failed().await, ("version", "tls"));
    assert_eq!(shoot.api.requests().total(), 0, "no credential went there");
}

#[tokio::test]
async fn a_certificate_whose_time_is_over_is_a_matter_of_tls() {
    let serving = Serving {
        expired: true,
        ..Serving::default()
    };
    let mut shoot = TestShoot::with(Options {
        serving,
        ..Options::default()
    })
    .await;
    assert_eq!(shoot.failed().await, ("version", "tls"));
    assert_eq!(shoot.api.requests().total(), 0);
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_a_matter_of_tls() {
    let mut shoot = TestShoot::start().await;
    let other = MemoryApi::start(&Authority::new().expect("an authority"), Options::default())
        .await
        .expect("an API server");
    shoot
        .secret
        .set(&other.kubeconfig_at(&shoot.api.url(), TOKEN));
    assert_eq!(shoot.failed().await, ("version", "tls"));
    assert_eq!(shoot.api.requests().total(), 0);
}

#[tokio::test]
async fn something_that_does_not_speak_tls_is_no_api_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream
                .write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                .await
                .ok();
        }
    });
    let mut shoot = TestShoot::start().await;
    shoot.secret.set(
        &shoot
            .api
            .kubeconfig_at(&format!("https://{address}"), TOKEN),
    );
    assert_eq!(shoot.failed().await, ("version", "tls"));
    server.abort();
}

#[tokio::test]
async fn the_certificate_may_be_checked_by_a_name_of_its_own() {
    let serving = Serving {
        names: vec!["api.internal".to_owned()],
        ..Serving::default()
    };
    let mut shoot = TestShoot::with(Options {
        serving,
        ..Options::default()
    })
    .await;
    let kubeconfig = shoot.api.kubeconfig(TOKEN);
    let named = |name: &str| {
        kubeconfig.replace(
            "    server:",
            &format!("    tls-server-name: {name}\n    server:"),
        )
    };
    shoot.secret.set(&named("api.internal"));
    shoot.healthy().await;
    shoot.secret.set(&named("other.internal"));
    assert_eq!(shoot.failed().await, ("version", "tls"));
    shoot.secret.set(&named("127.0.0.1"));
    assert_eq!(
        shoot.failed().await,
        ("version", "tls"),
        "an address may be a name, but is none of this certificate's"
    );
    shoot.secret.set(&named("'not a name'"));
    assert_eq!(shoot.failed().await.1, "kubeconfig");
}

#[tokio::test]
async fn the_name_to_check_a_certificate_by_may_be_an_address() {
    let serving = Serving {
        names: vec!["192.0.2.7".to_owned()],
        ..Serving::default()
    };
    let mut shoot = TestShoot::with(Options {
        serving,
        ..Options::default()
    })
    .await;
    let kubeconfig = shoot.api.kubeconfig(TOKEN);
    shoot
        .secret
        .set(&kubeconfig.replace("    server:", "    tls-server-name: 192.0.2.7\n    server:"));
    shoot.healthy().await;
}

/// A proxy that leads every CONNECT to one address and keeps the request lines.
async fn proxy(
    to: std::net::SocketAddr,
) -> (
    std::net::SocketAddr,
    Arc<Mutex<Vec<String>>>,
    tokio::task::JoinHandle<()>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let task = tokio::spawn(async move {
        let mut tunnels = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let log = Arc::clone(&log);
            tunnels.spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                stream.read_line(&mut line).await?;
                log.lock().await.push(line.trim().to_owned());
                while line.trim() != "" {
                    line.clear();
                    stream.read_line(&mut line).await?;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                copy_bidirectional(&mut stream, &mut TcpStream::connect(to).await?).await
            });
        }
    });
    (address, asked, task)
}

#[tokio::test]
async fn a_proxy_of_the_kubeconfig_is_used_and_resolves_the_name() {
    let mut shoot = TestShoot::start().await;
    let (address, asked, task) = proxy(shoot.api.address()).await;
    // Only the proxy can lead there: the name is one of the certificate's, but nothing here
    // resolves it.
    let kubeconfig = shoot
        .api
        .kubeconfig_at("https://kubernetes.default.svc:6443", TOKEN);
    shoot.secret.set(&kubeconfig.replace(
        "    server:",
        &format!("    proxy-url: http://{address}\n    server:"),
    ));
    shoot.healthy().await;
    shoot.healthy().await;
    assert_eq!(
        *asked.lock().await,
        ["CONNECT kubernetes.default.svc:6443 HTTP/1.1"]
    );
    assert_eq!(shoot.asked(), [VERSION, LEASES, LEASES]);
    task.abort();
}

#[tokio::test]
async fn behind_a_proxy_a_certificate_may_be_checked_by_another_name() {
    let mut shoot = TestShoot::start().await;
    let (address, asked, task) = proxy(shoot.api.address()).await;
    let kubeconfig = shoot
        .api
        .kubeconfig_at("https://elsewhere.example:6443", TOKEN);
    let lines = format!("    proxy-url: http://{address}\n    tls-server-name: localhost\n");
    shoot
        .secret
        .set(&kubeconfig.replace("    server:", &format!("{lines}    server:")));
    shoot.healthy().await;
    assert_eq!(
        *asked.lock().await,
        ["CONNECT elsewhere.example:6443 HTTP/1.1"]
    );
    task.abort();
}

#[tokio::test]
async fn a_proxy_that_is_away_is_no_connection() {
    let mut shoot = TestShoot::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let kubeconfig = shoot.api.kubeconfig(TOKEN);
    shoot.secret.set(&kubeconfig.replace(
        "    server:",
        &format!("    proxy-url: http://{address}\n    server:"),
    ));
    assert_eq!(shoot.failed().await, ("version", "connect"));
    assert_eq!(shoot.api.connections().accepted, 0);
}

#[tokio::test]
async fn clients_do_not_share_connections() {
    let mut shoot = TestShoot::start().await;
    shoot.healthy().await;
    let resources = Arc::clone(&shoot.resources);
    shoot.share(&resources);
    shoot.healthy().await;
    assert_eq!(shoot.api.connections().accepted, 2);
}
