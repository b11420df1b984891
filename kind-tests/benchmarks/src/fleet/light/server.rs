//! The process that serves light shoots. It ends when its standard input does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use kind_tests::control_plane::Authority;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::answer::{Answers, PROTOBUF};
use super::{Counts, Opened, Order, Plan};
use crate::fleet::heart::{Heart, Micros, SECOND, now};

/// More than a request of a probe ever is.
const LONGEST_HEAD: usize = 16 << 10;
const VERSION: &[u8] =
    br#"{"major":"1","minor":"36","gitVersion":"v1.36.3","goVersion":"go1.26.0","compiler":"gc","platform":"linux/amd64"}"#;

struct Shoot {
    heart: Mutex<Heart>,
    counters: Counters,
    /// When the prober's schedule wants the next request for leases.
    due: Mutex<Option<Micros>>,
}

#[derive(Default)]
struct Counters {
    version: AtomicU64,
    leases: AtomicU64,
    nodes: AtomicU64,
    other: AtomicU64,
    connections: AtomicU64,
    bytes: AtomicU64,
}

impl Counters {
    fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            version: read(&self.version),
            leases: read(&self.leases),
            nodes: read(&self.nodes),
            other: read(&self.other),
            connections: read(&self.connections),
            bytes: read(&self.bytes),
        }
    }
}

/// What all shoots share.
struct World {
    plan: Plan,
    answers: Answers,
    shoots: Vec<Shoot>,
    late: Mutex<Vec<f64>>,
}

/// Serves until standard input ends.
pub fn serve(plan: Plan) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run(plan))
}

async fn run(plan: Plan) -> Result<()> {
    let authority = Authority::new()?;
    let certificate = authority.issue("light shoots")?;
    let chain = vec![CertificateDer::from_pem_slice(certificate.certificate.as_bytes())?];
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes())?;
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));

    let shoot = |number| Shoot { heart: Mutex::new(plan.heart(number)), counters: Counters::default(), due: Mutex::default() };
    let world = Arc::new(World {
        answers: Answers::new(plan.nodes, i32::try_from(plan.grace)?),
        shoots: (0..plan.shoots).map(shoot).collect(),
        late: Mutex::default(),
        plan,
    });
    let mut listeners = JoinSet::new();
    let mut ports = Vec::with_capacity(world.shoots.len());
    for number in 0..world.shoots.len() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        ports.push(listener.local_addr()?.port());
        listeners.spawn(listen(listener, acceptor.clone(), world.clone(), number));
    }
    let mut output = tokio::io::stdout();
    let mut say = async |line: String| {
        output.write_all((line + "\n").as_bytes()).await?;
        output.flush().await
    };
    say(serde_json::to_string(&Opened { authority: authority.certificate(), ports })?).await?;
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = orders.next_line().await? {
        say(world.obey(serde_json::from_str(&line)?)?).await?;
    }
    Ok(())
}

impl World {
    fn obey(&self, order: Order) -> Result<String> {
        match order {
            Order::Cut { from, moments } => {
                for (shoot, at) in self.shoots[from..].iter().zip(moments) {
                    lock(&shoot.heart).cut(at);
                }
                Ok("{}".into())
            }
            Order::Heal { from, to, at } => {
                self.shoots[from..to].iter().for_each(|shoot| lock(&shoot.heart).heal(at));
                Ok("{}".into())
            }
            Order::Count => {
                let counts: Vec<Counts> = self.shoots.iter().map(|shoot| shoot.counters.read()).collect();
                Ok(serde_json::to_string(&counts)?)
            }
            Order::Lateness => Ok(serde_json::to_string(&std::mem::take(&mut *lock(&self.late)))?),
        }
    }

    fn answer(&self, number: usize, target: &str) -> (&'static str, u16, Vec<u8>) {
        let shoot = &self.shoots[number];
        let now = now();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (counter, answer) = match path {
            "/version" => (&shoot.counters.version, ("application/json", 200, VERSION.to_vec())),
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases" => {
                let heart = lock(&shoot.heart).clone();
                self.note_lateness(shoot, &heart, now);
                (&shoot.counters.leases, (PROTOBUF, 200, self.answers.leases(now, heart.renewed(now))))
            }
            "/api/v1/nodes" => {
                let value = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=')?.parse().ok());
                let (begin, limit) = (value("continue").unwrap_or(0), value("limit").unwrap_or(usize::MAX));
                (&shoot.counters.nodes, (PROTOBUF, 200, self.answers.nodes(now, begin, limit)))
            }
            _ => (&shoot.counters.other, ("text/plain", 404, b"404 page not found".to_vec())),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        shoot.counters.bytes.fetch_add(answer.2.len() as u64, Ordering::Relaxed);
        answer
    }

    /// The prober looks again before the verdict can fall, and before a renewal could be doubted: three quarters of the grace
    /// period less a beat and a second after it last looked, or when two of the leases that it saw expire, whichever is earlier.
    fn note_lateness(&self, shoot: &Shoot, heart: &Heart, now: Micros) {
        let (grace, beat) = (self.plan.grace(), self.plan.grace() / 4);
        let next = heart.expiry(now, 2, grace).min(now + grace * 3 / 4 - beat - SECOND);
        if let Some(due) = lock(&shoot.due).replace(next) {
            lock(&self.late).push((now - due) as f64 / SECOND as f64);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(listener: TcpListener, acceptor: TlsAcceptor, world: Arc<World>, number: usize) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (acceptor, world) = (acceptor.clone(), world.clone());
        connections.spawn(async move {
            // A client that goes away has nothing to be told.
            let _ = connection(stream, acceptor, &world, number).await;
        });
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, world: &World, number: usize) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = acceptor.accept(stream).await?;
    world.shoots[number].counters.connections.fetch_add(1, Ordering::Relaxed);
    let (mut seen, mut chunk) = (Vec::new(), [0; 2048]);
    loop {
        // A probe sends no bodies: a blank line ends a request.
        while let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            let head: Vec<u8> = seen.drain(..end + 4).collect();
            let line = String::from_utf8_lossy(head.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
            let (kind, status, body) = world.answer(number, line.split(' ').nth(1).unwrap_or_default());
            let mut answer =
                format!("HTTP/1.1 {status} .\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
            answer.extend_from_slice(&body);
            stream.write_all(&answer).await?;
            stream.flush().await?;
        }
        let count = stream.read(&mut chunk).await?;
        if count == 0 || seen.len() > LONGEST_HEAD {
            return Ok(());
        }
        seen.extend_from_slice(&chunk[..count]);
    }
}
