//! A replica at work: a process, or a task of this one, which lives by tokio's clock.

use std::collections::BTreeMap;
use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use common::flags::AgentArgs;
use common::transport::Dialer;
use futures::FutureExt;
use http::Uri;
use nix::sys::signal::Signal;
use parking_lot::Mutex;
use prober::Host;
use prober::shoot_client::resources::Resources;
use testbed::agent::{AgentKind, AgentStart, RunningAgent};
use testbed::wall;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::world::SoakWorld;

/// The longest time that bytes are under way, in milliseconds.
const LATENCY: u64 = 20;
/// Bytes that are under way together at most.
const PIECE: usize = 16 << 10;

/// What happens to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessFault {
    Terminated,
    Killed,
    /// It cannot go these ways. A process is suspended, whichever they are.
    CutOff(Ways),
    /// It can go them again.
    Back(Ways),
}

/// Ways of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    All,
    ToSeed,
    ToShoots,
}

/// How often a way that is cut is tried again.
const RETRY: Duration = Duration::from_millis(100);

type IsCut = [Arc<AtomicBool>; 2];

pub enum RunningReplica {
    Process(Box<RunningAgent>),
    Task(AgentTask),
}

/// An agent in this process. Dropping it kills it.
pub struct AgentTask {
    work: JoinHandle<Result<()>>,
    shutdown: CancellationToken,
    /// Whether the ways to the seed, and to the shoots, are cut.
    cut: IsCut,
    log: PathBuf,
}

impl RunningReplica {
    /// Its exit code, which one that was killed does not have; none while it runs.
    pub fn ended(&mut self) -> Result<Option<Option<i32>>> {
        match self {
            Self::Process(agent) => Ok(agent.ended()?.map(|status| status.code())),
            Self::Task(task) => task.ended(),
        }
    }

    /// Something happens to it.
    pub fn strike(&self, fault: ProcessFault) -> Result<()> {
        match (self, fault) {
            (Self::Process(agent), fault) => agent.signal(match fault {
                ProcessFault::Terminated => Signal::SIGTERM,
                ProcessFault::Killed => Signal::SIGKILL,
                ProcessFault::CutOff(_) => Signal::SIGSTOP,
                ProcessFault::Back(_) => Signal::SIGCONT,
            })?,
            (Self::Task(task), ProcessFault::Terminated) => task.shutdown.cancel(),
            (Self::Task(task), ProcessFault::Killed) => task.work.abort(),
            (Self::Task(task), ProcessFault::CutOff(ways)) => task.cut(ways, true),
            (Self::Task(task), ProcessFault::Back(ways)) => task.cut(ways, false),
        }
        Ok(())
    }

    /// The id of the process.
    pub fn id(&self) -> Option<i32> {
        match self {
            Self::Process(agent) => Some(agent.id()),
            Self::Task(_) => None,
        }
    }
}

impl AgentTask {
    /// Starts an agent that reaches the API servers of a world without sockets.
    pub fn start(start: &AgentStart, name: &'static str, world: &Arc<SoakWorld>) -> Result<Self> {
        let args = AgentArgs::try_parse_from(start.arguments())?;
        let (args, shutdown, cut) = (args.validate()?, CancellationToken::new(), IsCut::default());
        let dialer = dialer(world.clone(), cut.clone());
        let span = tracing::error_span!("replica", replica = name);
        let work = match start.kind {
            AgentKind::Prober => {
                let owner = world.owner.clone();
                let records = move |_| {
                    owner.send_modify(|(_, asked)| *asked += 1);
                    let (says, _) = *owner.borrow();
                    ready(says.map(|says| vec![says.to_owned()])).boxed()
                };
                let host = Host {
                    wall_clock: wall::now,
                    seed: dialer.clone(),
                    resources: Resources::dialing(dialer).with_records(records),
                };
                tokio::spawn(prober::run_on(host, args, shutdown.clone()).instrument(span))
            }
            AgentKind::Weeder => tokio::spawn(weeder::run_on(dialer, args, shutdown.clone())),
        };
        let log = start.log.clone();
        Ok(Self {
            work,
            shutdown,
            cut,
            log,
        })
    }

    fn cut(&self, ways: Ways, is_cut: bool) {
        let [seed, shoots] = &self.cut;
        if ways != Ways::ToShoots {
            seed.store(is_cut, Relaxed);
        }
        if ways != Ways::ToSeed {
            shoots.store(is_cut, Relaxed);
        }
    }

    fn ended(&mut self) -> Result<Option<Option<i32>>> {
        let Some(ended) = (&mut self.work).now_or_never() else {
            return Ok(None);
        };
        Ok(Some(match ended {
            Ok(Ok(())) => Some(0),
            Ok(Err(error)) => {
                std::fs::write(&self.log, format!("{error:#}\n"))?;
                Some(1)
            }
            Err(error) if error.is_cancelled() => None,
            Err(_) => Some(2),
        }))
    }
}

impl Drop for AgentTask {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// Dials the API servers of a world. Each connection has a latency of its own, drawn for each server
/// apart: who else is dialed meanwhile changes nothing.
fn dialer(world: Arc<SoakWorld>, [to_seed, to_shoots]: IsCut) -> Dialer {
    let seed = fastrand::u64(..);
    let latencies = Arc::new(Mutex::new(BTreeMap::<String, fastrand::Rng>::new()));
    Dialer::new(move |address: Uri| {
        let is_seed = world.is_seed(&address);
        let way = if is_seed { &to_seed } else { &to_shoots };
        let (world, way) = (world.clone(), way.clone());
        let mut latencies = latencies.lock();
        let drawn = latencies.entry(address.to_string());
        let drawn = drawn.or_insert_with(|| fastrand::Rng::with_seed(seed));
        let latency = Duration::from_millis(drawn.u64(1..=LATENCY));
        async move {
            sleep(latency).await;
            while way.load(Relaxed) {
                sleep(RETRY).await;
            }
            let far = world.dial(&address)?;
            let (near, client) = duplex(PIECE);
            tokio::spawn(carry(near, far, latency, way));
            Ok(client)
        }
    })
}

/// Carries bytes both ways until one has ended. What is sent while the way is cut ends it, so that
/// nothing arrives late; a quiet connection lives on.
async fn carry(near: DuplexStream, far: DuplexStream, latency: Duration, way: Arc<AtomicBool>) {
    let ((from_near, to_near), (from_far, to_far)) = (split(near), split(far));
    tokio::select! {
        biased;
        () = carry_one_way(from_near, to_far, latency, &way) => {}
        () = carry_one_way(from_far, to_near, latency, &way) => {}
    }
}

async fn carry_one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    latency: Duration,
    way: &AtomicBool,
) {
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        sleep(latency).await;
        if way.load(Relaxed) || to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
