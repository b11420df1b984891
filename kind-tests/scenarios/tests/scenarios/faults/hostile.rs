//! A shoot's API server in bad hands. What it answers costs the prober neither its memory, nor a
//! verdict, nor other shoots.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use api_server::protobuf::unread;
use api_server::{Authority, Serving};
use testbed::usage::Usage;
use testbed::{ProberConfig, ShootCluster, ShootPlan, own_scenario};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::{DOWN, alone, comes_back, end_alone, through_an_outage};

const PROTOBUF: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.kubernetes.protobuf\r\n";
/// What the prober may use beyond what it needed before: what is kept of a list (1 MiB), and room
/// for what an allocator keeps. In MiB.
const ROOM: f64 = 16.0;

/// What every request is answered, byte for byte: no HTTP library would say most of it.
struct Script {
    first: Vec<u8>,
    /// What is sent again and again after that, each time after a pause, until the client goes
    /// away.
    then: Option<(Vec<u8>, Duration)>,
}

/// A server that answers by a script until it is dropped.
struct Hostile {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl Hostile {
    async fn start(authority: &Authority, script: Script) -> Result<Self> {
        let tls = TlsAcceptor::from(authority.serve(&Serving::default())?);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (address, requests) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
        let (counter, script) = (requests.clone(), Arc::new(script));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, script, counter) = (tls.clone(), script.clone(), counter.clone());
                // A client may go away before it is answered.
                connections.spawn(async move { serve(stream, tls, &script, &counter).await.ok() });
            }
        });
        Ok(Self {
            address,
            requests,
            _tasks: tasks,
        })
    }
}

async fn serve(
    stream: TcpStream,
    tls: TlsAcceptor,
    script: &Script,
    requests: &AtomicU64,
) -> Result<()> {
    let mut stream = BufReader::new(tls.accept(stream).await?);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        // The prober sends no bodies: a blank line ends a request.
        if line == "\r\n" {
            requests.fetch_add(1, Ordering::Relaxed);
            stream.write_all(&script.first).await?;
            stream.flush().await?;
            while let Some((piece, pause)) = &script.then {
                tokio::time::sleep(*pause).await;
                stream.write_all(piece).await?;
                stream.flush().await?;
            }
        }
        line.clear();
    }
    Ok(())
}

fn script(head: &str, first: Vec<u8>, then: Option<(Vec<u8>, Duration)>) -> Script {
    let head = format!("{PROTOBUF}{head}\r\n").into_bytes();
    Script {
        first: [head, first].concat(),
        then,
    }
}

/// A gzip stream that unpacks to this many bytes, each one the same: 258 of them in 13 bits.
fn bomb(size: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = vec![true, true, false];
    let mut push =
        |code: u16, length: u16| bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
    // A blank, then "as before, 258 times" as often as needed, then the end of the block.
    push(0x30 + 0x20, 8);
    for _ in 0..size / 258 {
        push(0b1100_0101, 8);
        push(0, 5);
    }
    push(0, 7);
    let mut stream = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    stream.extend(bits.chunks(8).map(|byte| {
        byte.iter()
            .rev()
            .fold(0, |sum, &bit| sum << 1 | u8::from(bit))
    }));
    stream.extend([0; 8]);
    stream
}

#[test]
fn a_hostile_api_server_costs_neither_memory_nor_a_verdict_nor_other_shoots() -> Result<()> {
    own_scenario(
        "the stand-in's certificate is not one of the given cluster's authority",
        async |bed| {
            let (shoot, prober) = alone(
                bed,
                "hostile",
                ShootPlan::default(),
                ProberConfig::default(),
            )
            .await?;
            let other =
                ShootCluster::create(bed, &shoot.seed, "hostile-other", ShootPlan::default())
                    .await?;
            other.after_probes(2).await?;
            let before = Usage::of(prober.id())?.most;
            let begin = shoot.history().len();
            let bomb = bomb(1 << 28);
            let packed = format!(
                "Content-Encoding: gzip\r\nContent-Length: {}\r\n",
                bomb.len()
            );
            let unread = unread(1 << 50).to_vec();
            let piece = vec![b' '; 1 << 16];
            let at_once = Duration::ZERO;
            let scripts = [
                (
                    "a byte at a time",
                    script(
                        "Content-Length: 1000\r\n",
                        unread.clone(),
                        Some((vec![b' '], Duration::from_millis(500))),
                    ),
                ),
                (
                    "without an end",
                    script("", unread.clone(), Some((piece.clone(), at_once))),
                ),
                (
                    "of a declared size beyond all reason",
                    script(
                        "Content-Length: 1099511627776\r\n",
                        unread,
                        Some((piece.clone(), at_once)),
                    ),
                ),
                ("packed small", script(&packed, bomb, None)),
                (
                    "headers without an end",
                    Script {
                        first: PROTOBUF.into(),
                        then: Some((b"X-More: and more\r\n".repeat(100), at_once)),
                    },
                ),
            ];
            let mut last = None;
            for (what, script) in scripts {
                let hostile = Hostile::start(bed.authority().await?, script).await?;
                shoot.proxy.redirect(hostile.address);
                // From the first one on there is an outage, of which nobody can tell.
                shoot.nodes.cut_all();
                shoot
                    .eventually(what, async || {
                        let requests = hostile.requests.load(Ordering::Relaxed);
                        ensure!(requests >= 3, "{requests} requests");
                        Ok(())
                    })
                    .await?;
                shoot.untouched_since(begin)?;
                other.after_probes(1).await?;
                let grown = Usage::of(prober.id())?.most - before;
                ensure!(grown < ROOM, "an answer {what} has cost {grown:.0} MiB");
                last = Some(hostile);
            }
            // Meanwhile others are protected.
            through_an_outage(&other).await?;
            shoot.untouched_since(begin)?;
            drop(last);
            shoot.proxy.redirect(shoot.plane.address());
            shoot.held_down(&DOWN).await?;
            comes_back(&shoot).await?;
            other.end().await?;
            end_alone(shoot, prober).await
        },
    )
}
