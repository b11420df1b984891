//! Several API servers at once that mean harm, or have much to say.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use allocation_counter::measure;
use api_server::protobuf::node;
use api_server::protobuf::wire::{MEDIA_TYPE, bytes, envelope, message, text};
use api_server::{Authority, Fault, Serving};
use futures::future::join_all;
use prober::clock::Clock;
use prober::shoot_client::resources::Resources;
use prober::shoot_client::{Budget, ShootClient};
use serde_json::json;
use testbed::full_size;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::shoot::{LEASES, NODES, Secret, TOKEN, TestShoot};

const MIB: u64 = 1 << 20;
const SHOOTS: usize = 12;

/// A list of which as much is kept as may be, beside much that is not.
fn costly(kind: &str) -> Vec<u8> {
    let metadata = message(1, &[text(1, &"x".repeat(1000))]);
    let item = message(2, &[metadata, bytes(90, &vec![0; 7000])]);
    let list = [message(1, &[text(2, "7")]), item.repeat(450)].concat();
    envelope("v1", kind, &list)
}

type TlsStream = tokio_rustls::server::TlsStream<TcpStream>;

/// A TLS server that does this on each connection, and the Secret that leads to it.
async fn raw_api<F>(serve: impl Fn(TlsStream) -> F + Send + 'static) -> (Secret, JoinSet<()>)
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
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

/// Answers lists, and stalls before the last byte of the one at a path; counts that.
async fn stalling(
    mut stream: TlsStream,
    path: &str,
    list: Arc<[u8]>,
    stalled: watch::Sender<usize>,
) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let ordinary = envelope("v1", "LeaseList", &message(1, &[text(2, "7")]));
    while let Ok(1..) = stream.read(&mut request).await {
        let stalls = request.starts_with(format!("GET {path}").as_bytes());
        let body = if stalls { &*list } else { &ordinary };
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

/// A client of the same API server as if that were another shoot's.
fn client(secret: &Secret, resources: &Arc<Resources>) -> ShootClient<Secret> {
    ShootClient::new(Clock::start(), Arc::clone(resources), secret.clone())
}

async fn in_time<T>(done: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), done)
        .await
        .expect("it is done in time")
}

fn runtime(mut builder: Builder) -> Runtime {
    builder.enable_all().build().expect("a runtime")
}

/// A page of nodes of 17.5 kB.
fn large_nodes(shoot: &TestShoot) {
    let mut value = full_size::node(0);
    value["metadata"]["annotations"]["notes"] = json!("x".repeat(7000));
    let nodes = vec![node(&value); 200];
    shoot.api.computed().set("nodes", move || nodes.clone());
}

#[test]
fn hostile_shoots_have_a_bounded_share_of_memory_and_keep_no_ordinary_answer_out() {
    for (path, kind) in [(LEASES, "LeaseList"), (NODES, "NodeList")] {
        // In a thread of their own, so that nothing they do is counted as their clients'.
        let servers = runtime(Builder::new_multi_thread());
        let (stalled, mut stalls) = watch::channel(0);
        let list: Arc<[u8]> = costly(kind).into();
        let (mut shoot, (secret, _hostile)) = servers.block_on(async {
            let shoot = TestShoot::start().await;
            large_nodes(&shoot);
            let serve = move |stream| stalling(stream, path, list.clone(), stalled.clone());
            (shoot, raw_api(serve).await)
        });
        shoot.timeout = Duration::from_secs(15);
        let clients = runtime(Builder::new_current_thread());
        let probes = async {
            let mut probes = JoinSet::new();
            for _ in 0..SHOOTS {
                let mut client = client(&secret, &shoot.resources);
                probes.spawn(async move {
                    let budget = Budget::starting_now(Duration::from_secs(60));
                    client.leases(budget).await?;
                    client.nodes(budget).await
                });
            }
            // What is not answered soon is asked for twice (D-58).
            in_time(stalls.wait_for(|stalls| *stalls == 2 * SHOOTS))
                .await
                .expect("a server");
            shoot.nodes().await.expect("a complete answer");
            assert_eq!(probes.len(), SHOOTS);
            assert!(probes.try_join_next().is_none(), "all of them still wait");
        };
        let most = measure(|| clients.block_on(probes)).bytes_max;
        assert!(most <= 16 * MIB, "{kind}: {} KiB", most >> 10);
    }
}

#[tokio::test]
async fn shoots_whose_nodes_take_their_time_are_each_read_in_their_own() {
    let shoot = TestShoot::start().await;
    large_nodes(&shoot);
    let (bytes, pause) = (175_000, Duration::from_millis(100));
    shoot.meets(NODES, Fault::Slow { bytes, pause });
    let probes = (0..SHOOTS).map(|_| async {
        let mut client = client(&shoot.secret, &shoot.resources);
        let budget = Budget::starting_now(Duration::from_secs(20));
        client.leases(budget).await?;
        client.nodes(budget).await
    });
    for nodes in join_all(probes).await {
        assert_eq!(nodes.expect("a complete answer").items.len(), 200);
    }
}

/// Answers with this, and then with more of it without an end; counts that.
async fn flooding(
    mut stream: TlsStream,
    [first, more]: [&str; 2],
    sent: Arc<AtomicUsize>,
) -> std::io::Result<()> {
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
        let mut client = client(&secret, &shoot.resources);
        let budget = Budget::starting_now(Duration::from_secs(60));
        let error = client
            .leases(budget)
            .await
            .expect_err("no answer")
            .to_string();
        assert!(error.starts_with(expected), "{error}");
        // What the sockets hold of it is sent, too.
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent < 16 << 20, "{sent} bytes");
    }
}
