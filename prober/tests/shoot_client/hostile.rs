//! Several API servers at once that mean harm, or have much to say.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use allocation_counter::measure;
use api_server::protobuf::wire::{MEDIA_TYPE, bytes, envelope, message, text};
use api_server::{Authority, Fault, Serving};
use futures::future::{join_all, select_all};
use prober::clock::Clock;
use prober::shoot_client::error::ProbeError;
use prober::shoot_client::{Budget, ShootClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::shoot::{Secret, TOKEN, TestShoot};

const MIB: u64 = 1 << 20;
const SHOOTS: usize = 12;

/// An item with so much that nobody reads.
fn item(name: &str, unread: usize) -> Vec<u8> {
    let metadata = message(1, &[text(1, name)]);
    [metadata, bytes(90, &vec![0; unread])].concat()
}

/// Has a page of nodes of 17.5 kB.
async fn shoot_of_large_nodes() -> TestShoot {
    let shoot = TestShoot::start().await;
    let nodes = vec![item("n", 17_500).into(); 200];
    shoot.api.computed().set("nodes", move || nodes.clone());
    shoot
}

/// A TLS server that does this on each connection, and the Secret that leads to it.
async fn raw_api<F>(
    serve: impl Fn(TlsStream<TcpStream>) -> F + Send + 'static,
) -> (Secret, JoinSet<()>)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let authority = Authority::new().expect("an authority");
    let tls = TlsAcceptor::from(authority.serve(&Serving::default()).expect("a certificate"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let secret = Secret::default();
    secret.set(&api_server::kubeconfig(&url, &authority.pem(), TOKEN));
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = tls.accept(stream).await {
                connections.spawn(serve(stream));
            }
        }
    });
    (secret, server)
}

/// Probes as if that were another shoot's API server; the number of its nodes.
async fn probe(secret: Secret, shoot: &TestShoot) -> Result<usize, ProbeError> {
    let mut client = ShootClient::new(Clock::start(), shoot.resources.clone(), secret);
    let budget = Budget::starting_now(Duration::from_secs(60));
    client.leases(budget).await?;
    Ok(client.nodes(budget).await?.items.len())
}

/// Answers lists, and stalls before the last byte of the one at a path, which holds as much as may
/// be kept, and as much that is not; counts that.
async fn stalling(
    mut stream: TlsStream<TcpStream>,
    (path, kind): (&str, &str),
    stalled: watch::Sender<usize>,
) -> io::Result<()> {
    let [version, item] = [
        message(1, &[text(2, "7")]),
        message(2, &[item(&"x".repeat(1000), 7000)]),
    ];
    let costly = envelope("v1", kind, &[&*version, &item.repeat(450)].concat());
    let ordinary = envelope("v1", "LeaseList", &version);
    let mut request = [0; 4096];
    while let Ok(1..) = stream.read(&mut request).await {
        let stalls = request.starts_with(format!("GET {path}").as_bytes());
        let body = if stalls { &costly } else { &ordinary };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {length}\r\n\r\n"
        );
        let body = &body[..length - usize::from(stalls)];
        stream.write_all(&[head.as_bytes(), body].concat()).await?;
        stream.flush().await?;
        stalled.send_modify(|count| *count += usize::from(stalls));
    }
    Ok(())
}

#[test]
fn hostile_shoots_have_a_bounded_share_of_memory_and_keep_no_ordinary_answer_out() {
    for list in [("/apis/", "LeaseList"), ("/api/", "NodeList")] {
        // In threads of their own, so that nothing they do is counted as their clients'.
        let [servers, clients] = [Builder::new_multi_thread(), Builder::new_current_thread()]
            .map(|mut builder| builder.enable_all().build().expect("a runtime"));
        let (stalled, mut stalls) = watch::channel(0);
        let (shoot, (secret, _hostile)) = servers.block_on(async {
            let serve = move |stream| stalling(stream, list, stalled.clone());
            (shoot_of_large_nodes().await, raw_api(serve).await)
        });
        let probes = async {
            let hostile = (0..SHOOTS).map(|_| Box::pin(probe(secret.clone(), &shoot)));
            let ordinary = async {
                // What is not answered soon is asked for twice (D-58).
                let all = stalls.wait_for(|stalls| *stalls == 2 * SHOOTS);
                all.await.expect("a server");
                probe(shoot.secret.clone(), &shoot).await
            };
            tokio::select! {
                (ended, ..) = select_all(hostile) => panic!("they still wait: {ended:?}"),
                nodes = ordinary => assert_eq!(nodes.expect("a complete answer"), 200),
            }
        };
        let most = measure(|| clients.block_on(probes)).bytes_max;
        assert!(most <= 16 * MIB, "{list:?}: {} KiB", most >> 10);
    }
}

#[tokio::test]
async fn shoots_whose_nodes_take_their_time_are_each_read_in_their_own() {
    let shoot = shoot_of_large_nodes().await;
    let (bytes, pause) = (175_000, Duration::from_millis(100));
    shoot.meets("nodes", Fault::Slow { bytes, pause });
    let probes = (0..SHOOTS).map(|_| probe(shoot.secret.clone(), &shoot));
    for nodes in join_all(probes).await {
        assert_eq!(nodes.expect("a complete answer"), 200);
    }
}

/// Answers with this, and then with more of it without an end; counts that.
async fn flooding(
    mut stream: TlsStream<TcpStream>,
    [first, more]: [&str; 2],
    sent: Arc<AtomicUsize>,
) -> io::Result<()> {
    stream.read_u8().await?;
    stream.write_all(first.as_bytes()).await?;
    loop {
        stream.write_all(more.as_bytes()).await?;
        sent.fetch_add(more.len(), Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_flood_before_or_in_a_head_is_given_up() {
    let shoot = TestShoot::start().await;
    for (answer, expected) in [
        (
            ["", "HTTP/1.1 103 Early Hints\r\n\r\n"],
            "version: the connection broke: more than 262144 bytes came before the head of an answer",
        ),
        (
            ["HTTP/1.1 200 OK\r\n", "X-More: and more\r\n"],
            "version: the connection broke: the head of the answer has more than ",
        ),
    ] {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let (secret, _server) =
            raw_api(move |stream| flooding(stream, answer, count.clone())).await;
        let error = probe(secret, &shoot)
            .await
            .expect_err("no answer")
            .to_string();
        assert!(error.starts_with(expected), "{error}");
        // What the sockets hold of it is sent, too.
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < 16 << 20, "{sent} bytes");
    }
}
