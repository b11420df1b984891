//! Several API servers at once that mean harm, or have much to say.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use allocation_counter::measure;
use api_server::protobuf::node;
use api_server::protobuf::wire::{MEDIA_TYPE, bytes, envelope, message, text};
use api_server::{Authority, Fault, Serving, When};
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

/// An API server that stalls before the last byte of a list.
struct StallingApi {
    secret: Secret,
    /// How often it has stalled.
    stalls: watch::Receiver<usize>,
    _task: JoinSet<()>,
}

impl StallingApi {
    async fn start(path: &'static str, kind: &str) -> Self {
        let authority = Authority::new().expect("an authority");
        let tls = TlsAcceptor::from(authority.serve(&Serving::default()).expect("a certificate"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        let secret = Secret::default();
        secret.set(&api_server::kubeconfig(&url, &authority.pem(), TOKEN));
        let (stalled, stalls) = watch::channel(0);
        let list: Arc<[u8]> = costly(kind).into();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, list, stalled) = (tls.clone(), Arc::clone(&list), stalled.clone());
                connections.spawn(async move { serve(stream, tls, path, &list, &stalled).await });
            }
        });
        Self {
            secret,
            stalls,
            _task: task,
        }
    }
}

async fn serve(
    stream: TcpStream,
    tls: TlsAcceptor,
    path: &str,
    list: &[u8],
    stalled: &watch::Sender<usize>,
) -> std::io::Result<()> {
    let mut stream = tls.accept(stream).await?;
    let mut request = [0; 4096];
    let ordinary = envelope("v1", "LeaseList", &message(1, &[text(2, "7")]));
    while let Ok(1..) = stream.read(&mut request).await {
        let stalls = request.starts_with(format!("GET {path}").as_bytes());
        let body = if stalls { list } else { &ordinary };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream
            .write_all(&body[..body.len() - usize::from(stalls)])
            .await?;
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
        let (mut shoot, mut hostile) = servers.block_on(async {
            let shoot = TestShoot::start().await;
            large_nodes(&shoot);
            (shoot, StallingApi::start(path, kind).await)
        });
        shoot.timeout = Duration::from_secs(15);
        let clients = runtime(Builder::new_current_thread());
        let probes = async {
            let mut probes = JoinSet::new();
            for _ in 0..SHOOTS {
                let mut client = client(&hostile.secret, &shoot.resources);
                probes.spawn(async move {
                    let budget = Budget::starting_now(Duration::from_secs(60));
                    client.leases(budget).await?;
                    client.nodes(budget).await
                });
            }
            // What is not answered soon is asked for twice (D-58).
            in_time(hostile.stalls.wait_for(|stalls| *stalls == 2 * SHOOTS))
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
    let slow = Fault::Slow {
        bytes: 175_000,
        pause: Duration::from_millis(100),
    };
    shoot.api.faults().add(When::request("GET", NODES), slow);
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

/// An API server that answers with this, and then with more of it without an end; counts that.
async fn flooding(
    tls: TlsAcceptor,
    listener: TcpListener,
    (first, more): (&'static str, &'static str),
    sent: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, sent) = (tls.clone(), Arc::clone(&sent));
        connections.spawn(async move {
            let mut stream = tls.accept(stream).await?;
            stream.read_u8().await?;
            stream.write_all(first.as_bytes()).await?;
            loop {
                stream.write_all(more.as_bytes()).await?;
                sent.fetch_add(more.len(), Ordering::Relaxed);
            }
            #[expect(unreachable_code, reason = "names the error")]
            Ok::<_, std::io::Error>(())
        });
    }
}

#[tokio::test]
async fn a_flood_of_1xx_responses_is_given_up() {
    let error = given_up(("", "HTTP/1.1 103 Early Hints\r\n\r\n")).await;
    assert_eq!(
        error,
        "version: the connection broke: more than 262144 bytes came before the head of an answer"
    );
}

#[tokio::test]
async fn headers_without_an_end_are_given_up() {
    let error = given_up(("HTTP/1.1 200 OK\r\n", "X-More: and more\r\n")).await;
    let expected = "version: the connection broke: the head of the answer has more than ";
    assert!(error.starts_with(expected), "{error}");
}

/// Error of a probe that is answered so.
async fn given_up(answer: (&'static str, &'static str)) -> String {
    let mut shoot = TestShoot::start().await;
    let authority = Authority::new().expect("an authority");
    let tls = TlsAcceptor::from(authority.serve(&Serving::default()).expect("a certificate"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let sent = Arc::new(AtomicUsize::new(0));
    let server = tokio::spawn(flooding(tls, listener, answer, Arc::clone(&sent)));
    shoot
        .secret
        .set(&api_server::kubeconfig(&url, &authority.pem(), TOKEN));
    shoot.timeout = Duration::from_secs(60);
    let error = shoot.leases().await.expect_err("no answer");
    server.abort();
    // What the sockets hold of it is sent, too.
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 16 << 20, "{sent} bytes");
    error.to_string()
}
