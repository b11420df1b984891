use std::error::Error;
use std::future::ready;
use std::net::TcpListener;

use hyper_util::client::proxy::matcher::Matcher;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::*;
use crate::transport::causes;

const LIMIT: Duration = Duration::from_secs(3);

/// Fails to connect to this server.
async fn fail(dialer: Dialer, server: &str, proxy: Option<Intercept>) -> BoxError {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let server: Uri = server.parse().unwrap();
    let mut config = Config::new(server.clone());
    config.accept_invalid_certs = true;
    let route = Server { config, proxy }.route().unwrap();
    let connected = route.connect(dialer, server, LIMIT).await;
    connected.err().expect("no connection")
}

#[tokio::test(start_paused = true)]
async fn a_name_has_its_own_time_and_what_follows_shares_the_limit() {
    let proxy = Matcher::builder().all("http://proxy").build();
    let proxy = proxy.intercept(&Uri::from_static("https://any"));
    for (seconds, proxy) in [(0, None), (2, None), (4, None), (2, proxy)] {
        // TLS is never answered, and CONNECT is not.
        let dialer = Dialer::new(move |_| async move {
            sleep(Duration::from_secs(seconds)).await;
            let (ours, theirs) = duplex(1 << 16);
            std::mem::forget(theirs);
            Ok(ours)
        });
        let begin = Instant::now();
        let error = fail(dialer, "https://shoot.example", proxy).await;
        let error = error.downcast_ref::<io::Error>().expect("a timeout");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begin.elapsed(), LIMIT);
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    let look_ups = Arc::new(Semaphore::new(0));
    let dialer = Dialer::Tcp {
        look_ups: Arc::clone(&look_ups),
    };
    let begin = Instant::now();
    let is_resolved = async {
        sleep(2 * LIMIT).await;
        look_ups.add_permits(1);
    };
    tokio::join!(fail(dialer, &server, None), is_resolved);
    assert_eq!(begin.elapsed(), 3 * LIMIT);
}

#[tokio::test]
async fn a_server_of_old_tls_is_refused() {
    // A server's first message: that it speaks TLS 1.1, and has chosen AES-128-CBC.
    let head = [22, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2];
    let hello = [&head[..], &[7; 32], &[0, 0xc0, 0x13, 0]].concat();
    let dialer = Dialer::new(move |_| {
        let (ours, mut theirs) = duplex(1 << 16);
        let hello = hello.clone();
        tokio::spawn(async move {
            theirs.read_u8().await.ok();
            theirs.write_all(&hello).await.ok();
            // Until the client has read that and closes.
            theirs.read_to_end(&mut Vec::new()).await.ok();
        });
        ready(Ok(ours))
    });
    let error = fail(dialer, "https://shoot.example", None).await;
    let error: &(dyn Error + 'static) = &*error;
    assert!(
        causes(error).any(|cause| cause.is::<rustls::Error>()),
        "{error}"
    );
}
