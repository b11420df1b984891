//! A stand-in for an API server in trouble, or in bad hands: it speaks TLS and answers every request alike.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::control_plane::Certificate;

/// What every request is answered.
#[derive(Clone, Debug)]
pub struct Script {
    /// What is sent first.
    pub first: Vec<u8>,
    /// What is sent again and again after that, each time after a pause, until the client goes away.
    pub then: Option<(Vec<u8>, Duration)>,
}

/// A server that answers every request alike. Dropping it closes everything.
pub struct StandIn {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl StandIn {
    /// Serves with this certificate. `headers` are whole lines, such as `Retry-After: 3`.
    pub async fn start(certificate: &Certificate, status: u16, headers: &[&str]) -> Result<Self> {
        let body = format!(
            r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"in trouble","code":{status}}}"#
        );
        let mut head = format!("HTTP/1.1 {status} Trouble\r\nContent-Type: application/json\r\n");
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        let first = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
        Self::follow(certificate, Script { first, then: None }).await
    }

    /// Serves with this certificate, by this script.
    pub async fn follow(certificate: &Certificate, script: Script) -> Result<Self> {
        let chain = vec![CertificateDer::from_pem_slice(certificate.certificate.as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes())?;
        let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("no port")?;
        let address = listener.local_addr()?;
        let script = Arc::new(script);
        let requests = Arc::new(AtomicU64::new(0));
        let counter = requests.clone();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let (acceptor, script, counter) = (acceptor.clone(), script.clone(), counter.clone());
                connections.spawn(async move {
                    // A client that goes away has nothing to be told.
                    let _ = serve(stream, acceptor, &script, &counter).await;
                });
            }
        });
        Ok(Self { address, requests, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests answered so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, script: &Script, requests: &AtomicU64) -> Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let (mut seen, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        // The prober sends no bodies: a blank line ends a request.
        while let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            seen.drain(..end + 4);
            requests.fetch_add(1, Ordering::Relaxed);
            stream.write_all(&script.first).await?;
            while let Some((piece, pause)) = &script.then {
                tokio::time::sleep(*pause).await;
                stream.write_all(piece).await?;
                stream.flush().await?;
            }
        }
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        seen.extend_from_slice(&chunk[..count]);
    }
}
