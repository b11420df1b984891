use std::error::Error;
use std::future::pending;

use futures::FutureExt;
use hyper_util::client::proxy::matcher::Matcher;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::time::{Instant, sleep};

use super::*;
use crate::transport::causes;

const LIMIT: Duration = Duration::from_secs(3);

/// A connector for a server of this name.
fn connector(dialer: &Dialer, proxy: Option<Intercept>) -> (Connector, Uri) {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let server: Uri = "https://shoot.example".parse().unwrap();
    let mut config = Config::new(server.clone());
    config.accept_invalid_certs = true;
    let route = Server { config, proxy }.route().unwrap();
    (route.connector(dialer, LIMIT), server)
}

/// A host whose name takes so long, whose connections take so long, and which never says anything.
fn silent(name: u64, tcp: u64) -> Dialer {
    let wait = |seconds| sleep(Duration::from_secs(seconds));
    Dialer(Arc::new(move |_, _| {
        let dialing = async move {
            wait(tcp).await;
            let (ours, theirs) = duplex(1 << 16);
            tokio::spawn(async move {
                let _theirs = theirs;
                pending::<()>().await;
            });
            Ok(TokioIo::new(Box::new(ours) as Wire))
        };
        wait(name).map(|()| Ok(dialing.boxed())).boxed()
    }))
}

#[tokio::test(start_paused = true)]
async fn a_name_has_its_own_time_and_what_follows_shares_the_limit() {
    let to_proxy = || Matcher::builder().all("http://proxy").build();
    for (name, tcp) in [(0, 0), (7, 0), (7, 2), (0, 4)] {
        // TLS is never answered, and CONNECT is not.
        for proxy in [None, to_proxy().intercept(&Uri::from_static("https://any"))] {
            let (connector, server) = connector(&silent(name, tcp), proxy);
            let begin = Instant::now();
            let error = connector.oneshot(server).await.err().expect("no answer");
            let error = error.downcast_ref::<io::Error>().expect("a timeout");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert_eq!(begin.elapsed(), Duration::from_secs(name) + LIMIT);
        }
    }
}

#[tokio::test]
async fn a_server_of_old_tls_is_refused() {
    let alert = |description| vec![21, 3, 3, 0, 2, 2, description];
    // A server's first message: its version of TLS, and that it has chosen AES-128-CBC.
    let hello = |version| {
        let head = [22, 3, version, 0, 42, 2, 0, 0, 38, 3, version];
        [&head[..], &[7; 32], &[0, 0xc0, 0x13, 0]].concat()
    };
    for (name, answer) in [
        ("a suite with CBC only, or key exchange by RSA", alert(40)),
        ("TLS 1.0 and 1.1 only", alert(70)),
        ("TLS 1.1", hello(2)),
        ("a suite that was not offered", hello(3)),
        ("HTTP", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    ] {
        let dialer = Dialer::new(move |_| {
            let (ours, mut theirs) = duplex(1 << 16);
            let answer = answer.clone();
            tokio::spawn(async move {
                theirs.read_u8().await.ok();
                theirs.write_all(&answer).await.ok();
                // Until the client has read that and closes.
                theirs.read_to_end(&mut Vec::new()).await.ok();
            });
            ready(Ok(ours))
        });
        let (connector, server) = connector(&dialer, None);
        let error = connector.oneshot(server).await.err().expect(name);
        let error: &(dyn Error + 'static) = &*error;
        let is_tls = |cause: &(dyn Error + 'static)| cause.is::<rustls::Error>();
        assert!(causes(error).any(is_tls), "{name}: {error}");
    }
}
