//! Several API servers at once that mean harm, or have much to say.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use allocation_counter::measure;
use api_server::protobuf::wire::{MEDIA_TYPE, bytes, envelope, message, text};
use api_server::{Authority, Fault, Serving};
use futures::future::{join_all, select_all};
use prober::clock::Clock;
use prober::shoot_client::error::ProbeError;
use prober::shoot_client::{Budget, ShootClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

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

/// A TLS server that answers each request so: the Secret that leads to it, and how many bytes it has
/// sent.
async fn raw_api(
    answer: impl Fn(&[u8]) -> Arc<[u8]> + Clone + Send + 'static,
) -> (Secret, watch::Receiver<usize>, JoinSet<()>) {
    let authority = Authority::new().expect("an authority");
    let tls = TlsAcceptor::from(authority.serve(&Serving::default()).expect("a certificate"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let secret = Secret::default();
    secret.set(&api_server::kubeconfig(&url, &authority.pem(), TOKEN));
    let (count, sent) = watch::channel(0);
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, answer, count) = (tls.clone(), answer.clone(), count.clone());
            connections.spawn(async move {
                let (mut stream, mut request) = (tls.accept(stream).await?, [0; 4096]);
                while stream.read(&mut request).await? > 0 {
                    let answer = answer(&request);
                    stream.write_all(&answer).await?;
                    stream.flush().await?;
                    count.send_modify(|count| *count += answer.len());
                }
                Ok::<_, io::Error>(())
            });
        }
    });
    (secret, sent, server)
}

/// Probes as if that were another shoot's API server; the number of its nodes.
async fn probe(secret: Secret, shoot: &TestShoot) -> Result<usize, ProbeError> {
    let mut client = ShootClient::new(Clock::start(), shoot.resources.clone());
    let budget = Budget::starting_now(Duration::from_secs(60));
    client.leases(&secret.current()?, budget).await?;
    Ok(client.nodes(budget).await?.items.len())
}

/// Answers of an API server that stalls before the last byte of the list at a path, which holds as
/// much as may be kept, and more that is not.
fn stalling(
    path: &'static str,
    kind: &str,
) -> impl Fn(&[u8]) -> Arc<[u8]> + Clone + Send + 'static {
    let [version, item] = [
        message(1, &[text(2, "7")]),
        message(2, &[item(&"x".repeat(1000), 7000)]),
    ];
    let costly = envelope("v1", kind, &[&*version, &item.repeat(450)].concat());
    let ordinary = envelope("v1", "LeaseList", &version);
    let [costly, ordinary] = [(costly, 1), (ordinary, 0)].map(|(body, held_back)| -> Arc<[u8]> {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {length}\r\n\r\n"
        );
        [head.as_bytes(), &body[..length - held_back]]
            .concat()
            .into()
    });
    move |request| {
        let stalls = request.starts_with(format!("GET {path}").as_bytes());
        Arc::clone(if stalls { &costly } else { &ordinary })
    }
}

#[test]
fn hostile_shoots_have_a_bounded_share_of_memory_and_keep_no_ordinary_answer_out() {
    // What a connection that has answered does not answer soon is asked for twice (D-58).
    for (path, kind, attempts) in [("/apis/", "LeaseList", 1), ("/api/", "NodeList", 2)] {
        // In threads of their own, so that nothing they do is counted as their clients'.
        let [servers, clients] = [Builder::new_multi_thread(), Builder::new_current_thread()]
            .map(|mut builder| builder.enable_all().build().expect("a runtime"));
        let (shoot, (secret, mut sent, _hostile)) = servers.block_on(async {
            (
                shoot_of_large_nodes().await,
                raw_api(stalling(path, kind)).await,
            )
        });
        let probes = async {
            let hostile = (0..SHOOTS).map(|_| Box::pin(probe(secret.clone(), &shoot)));
            let ordinary = async {
                let all = sent.wait_for(|sent| *sent > attempts * SHOOTS * 3_600_000);
                all.await.expect("a server");
                probe(shoot.secret.clone(), &shoot).await
            };
            tokio::select! {
                (ended, ..) = select_all(hostile) => panic!("they still wait: {ended:?}"),
                nodes = ordinary => assert_eq!(nodes.expect("a complete answer"), 200),
            }
        };
        let most = measure(|| clients.block_on(probes)).bytes_max;
        assert!(most <= 16 * MIB, "{kind}: {} KiB", most >> 10);
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
