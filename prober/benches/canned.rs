//! An API server that gives the same answers again and again, in a thread of its own, so that nothing it does is counted as its client's.

#![allow(dead_code, reason = "several programs share this file and each uses a part of it")]

use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use base64::{Engine, prelude::BASE64_STANDARD};
use prober::shoot_client::error::Cause;
use prober::shoot_client::{KubeconfigSecret, Secrets};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::bodies;

/// Go's HTTP server sends what is written to it in chunks of its buffer's size.
const CHUNK: usize = 2048;

/// A running server; ends when dropped.
pub struct Canned {
    kubeconfig: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Canned {
    /// Answers with these leases, and with nodes that belong to them.
    pub fn start(leases: Vec<u8>, nodes: Vec<u8>) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let key = || KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(CertificateParams::default(), key()).expect("an authority");
        let own = key();
        let names = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
        let certificate = names.signed_by(&own, &authority).expect("a certificate");
        let own = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.serialize_der()));
        let tls = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate.der().clone()], own);
        let tls = TlsAcceptor::from(Arc::new(tls.expect("TLS")));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        listener.set_nonblocking(true).expect("a socket");
        let answers = HashMap::from([
            ("/version", whole("application/json", b"{\"gitVersion\":\"v1.33.0\"}")),
            ("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", chunked(bodies::PROTOBUF, &leases)),
            ("/api/v1/nodes?limit=500", chunked(bodies::PROTOBUF, &nodes)),
        ]);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    () = serve(listener, tls, Arc::new(answers)) => {}
                    _ = stopped => {}
                }
            });
        });
        let ca = BASE64_STANDARD.encode(authority.pem());
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: it\ncontexts:\n- name: it\n  context:\n    cluster: it\n    user: it\n\
             clusters:\n- name: it\n  cluster:\n    server: {url}\n    certificate-authority-data: {ca}\n\
             users:\n- name: it\n  user:\n    token: a-token\n"
        );
        Self { kubeconfig, stop: Some(stop), thread: Some(thread) }
    }

    /// The Secret that leads there.
    pub fn secret(&self) -> Known {
        Known(Arc::new(KubeconfigSecret { kubeconfig: Some(self.kubeconfig.clone().into_bytes()) }))
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// A Secret that does not change.
pub struct Known(Arc<KubeconfigSecret>);

impl Secrets for Known {
    fn current(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        Ok(Arc::clone(&self.0))
    }

    async fn reread(&self) -> Result<Arc<KubeconfigSecret>, Cause> {
        self.current()
    }
}

type Answers = HashMap<&'static str, Vec<u8>>;

async fn serve(listener: tokio::net::TcpListener, tls: TlsAcceptor, answers: Arc<Answers>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, answers) = (tls.clone(), Arc::clone(&answers));
        connections.spawn(async move {
            stream.set_nodelay(true)?;
            let mut stream = BufReader::new(tls.accept(stream).await?);
            let (mut path, mut line) = (String::new(), String::new());
            while stream.read_line(&mut line).await? > 0 {
                if let Some(asked) = line.strip_prefix("GET ") {
                    path = asked.split(' ').next().unwrap_or_default().to_owned();
                }
                if line == "\r\n" {
                    let answer = answers.get(path.as_str()).ok_or(std::io::ErrorKind::NotFound)?;
                    stream.write_all(answer).await?;
                    stream.flush().await?;
                }
                line.clear();
            }
            Ok::<_, std::io::Error>(())
        });
    }
}

/// The headers that a kube-apiserver sends.
fn head(content_type: &str, transfer: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nAudit-Id: 0b9a3c52-7d1f-4f7e-9a53-3f0e6f0b8d11\r\nCache-Control: no-cache, private\r\n\
         Content-Type: {content_type}\r\nX-Kubernetes-Pf-Flowschema-Uid: 0b9a3c52-7d1f-4f7e-9a53-3f0e6f0b8d11\r\n\
         X-Kubernetes-Pf-Prioritylevel-Uid: 0b9a3c52-7d1f-4f7e-9a53-3f0e6f0b8d11\r\n\
         Date: Sat, 21 Nov 2026 12:00:00 GMT\r\n{transfer}\r\n\r\n"
    )
}

fn whole(content_type: &str, body: &[u8]) -> Vec<u8> {
    [head(content_type, &format!("Content-Length: {}", body.len())).as_bytes(), body].concat()
}

fn chunked(content_type: &str, body: &[u8]) -> Vec<u8> {
    let chunk = |chunk: &[u8]| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
    let head = head(content_type, "Transfer-Encoding: chunked").into_bytes();
    [head].into_iter().chain(body.chunks(CHUNK).map(chunk)).chain([b"0\r\n\r\n".to_vec()]).collect::<Vec<_>>().concat()
}
