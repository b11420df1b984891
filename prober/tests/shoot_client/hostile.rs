//! Several API servers that mean harm together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prober::clock::Clock;
use prober::shoot_client::resources::Resources;
use prober::shoot_client::{Budget, ShootClient};
use testbed::api::{Fault, When};
use testbed::authority::{Authority, Serving};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::shoot::{LEASES, Secret, TOKEN, TestShoot};

const MIB: usize = 1 << 20;

/// An API server that says of its leases almost as much as it may, and never ends.
async fn hostile(tls: TlsAcceptor, listener: TcpListener) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let tls = tls.clone();
        connections.spawn(async move {
            let mut stream = tls.accept(stream).await?;
            let mut request = [0; 4096];
            while let Ok(1..) = stream.read(&mut request).await {
                let is_version = request.starts_with(b"GET /version");
                let length = if is_version { 2 } else { 8 * MIB };
                let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all(head.as_bytes()).await?;
                let pieces = if is_version { 1 } else { 127 };
                let piece = if is_version { b"{}".to_vec() } else { vec![b' '; 64 << 10] };
                for _ in 0..pieces {
                    stream.write_all(&piece).await?;
                }
                stream.flush().await?;
            }
            Ok::<_, std::io::Error>(())
        });
    }
}

/// So many hostile shoots, probed again and again until they are dropped.
async fn probed(count: usize, resources: &Arc<Resources>) -> JoinSet<()> {
    let authority = Authority::new().expect("an authority");
    let tls = TlsAcceptor::from(authority.serve(&Serving::default()).expect("a certificate"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let secret = Secret::default();
    secret.set(&testbed::api::kubeconfig(&url, &authority.pem(), TOKEN));
    let mut tasks = JoinSet::new();
    tasks.spawn(hostile(tls, listener));
    for _ in 0..count {
        let mut client = ShootClient::new(Clock::start(), Arc::clone(resources), secret.clone());
        tasks.spawn(async move {
            loop {
                let _ = client
                    .leases(Budget::starting_now(Duration::from_secs(30)))
                    .await;
            }
        });
    }
    tasks
}

#[tokio::test]
async fn hostile_shoots_have_a_bounded_share_of_memory_and_keep_no_ordinary_answer_out() {
    let mut shoot = TestShoot::start().await;
    let resources = Arc::clone(&shoot.resources);
    let hostile = probed(12, &resources).await;
    let leases = |length: usize| {
        let mut body = br#"{"kind":"LeaseList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}"#.to_vec();
        body.resize(length, b' ');
        Fault::Answer {
            code: 200,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: body.into(),
        }
    };
    let large = shoot
        .api
        .faults()
        .add(When::request("GET", LEASES), leases(6 * MIB));
    let taken = async {
        // In time to see that it waits for them, and not for its own bytes.
        shoot.timeout = Duration::from_secs(4);
        loop {
            match shoot.leases().await {
                Ok(_) => {}
                Err(error) if error.cause.category() == "timeout" => break,
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), taken)
        .await
        .expect("no more is left than belongs to each");
    shoot.api.faults().remove(large);
    let ordinary = shoot
        .api
        .faults()
        .add(When::request("GET", LEASES), leases(2 * MIB));
    shoot.timeout = Duration::from_secs(20);
    shoot.healthy().await;
    shoot.api.faults().remove(ordinary);
    drop(hostile);
    shoot
        .api
        .faults()
        .add(When::request("GET", LEASES), leases(6 * MIB));
    shoot.healthy().await;
}

/// An API server that answers with 1xx responses without an end; counts them.
async fn flooding(tls: TlsAcceptor, listener: TcpListener, sent: Arc<AtomicUsize>) {
    const INTERIM: &[u8] = b"HTTP/1.1 103 Early Hints\r\n\r\n";
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, sent) = (tls.clone(), Arc::clone(&sent));
        connections.spawn(async move {
            let mut stream = tls.accept(stream).await?;
            stream.read_u8().await?;
            loop {
                stream.write_all(INTERIM).await?;
                sent.fetch_add(INTERIM.len(), Ordering::Relaxed);
            }
            #[expect(unreachable_code, reason = "names the error")]
            Ok::<_, std::io::Error>(())
        });
    }
}

#[tokio::test]
async fn a_flood_of_1xx_responses_is_given_up() {
    let mut shoot = TestShoot::start().await;
    let authority = Authority::new().expect("an authority");
    let tls = TlsAcceptor::from(authority.serve(&Serving::default()).expect("a certificate"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let sent = Arc::new(AtomicUsize::new(0));
    let server = tokio::spawn(flooding(tls, listener, Arc::clone(&sent)));
    shoot
        .secret
        .set(&testbed::api::kubeconfig(&url, &authority.pem(), TOKEN));
    shoot.timeout = Duration::from_secs(60);
    let error = shoot.leases().await.expect_err("no answer");
    assert_eq!(
        error.to_string(),
        "version: the connection broke: more than 262144 bytes came before the head of an answer"
    );
    server.abort();
    // What the sockets hold of it is sent, too.
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 16 * MIB, "{sent} bytes");
}
