//! The replicas of one story, as a Deployment keeps them: started again whenever they end. One is
//! hit at its fatal write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api_server::{Fault, FaultId, MemoryApi, Record, When};
use nix::sys::signal::Signal;
use testbed::agent::{AgentStart, RunningAgent};
use tokio::sync::Mutex;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use crate::explorer::{Kill, Point, Told, points};
use crate::world::requests;

pub const LEASES: &str = "leases.coordination.k8s.io";
/// Gardener grants the whole end 5 s (rule 85); a machine that does much at once may take longer to
/// say so.
const END: Duration = Duration::from_secs(15);

/// Waits until a replica has ended by itself, which it must do with this exit code.
async fn ends_with(code: i32, replica: &mut RunningAgent) -> Result<()> {
    let ended = replica.end(END).await?.code().context("it was killed")?;
    ensure!(ended == code, "exit code {ended}\n{}", replica.tail(25));
    Ok(())
}

/// Asks a replica to end, which it must do well.
pub async fn terminate(mut replica: RunningAgent) -> Result<()> {
    replica.signal(Signal::SIGTERM)?;
    ends_with(0, &mut replica).await
}

/// A process and the user that it is for the seed.
type Replica = (&'static str, RunningAgent);

/// The replicas, and whether one was hit as planned.
pub struct KilledReplicas<'a> {
    seed: &'a MemoryApi,
    kill: Option<Kill>,
    /// Where a process is awaited to be killed; and whose request was the last of the sort: when it
    /// has sprung, the fatal one.
    trap: Option<(FaultId, Arc<parking_lot::Mutex<String>>)>,
    /// One that is not killed is suspended until all is over; a write that has not been applied is,
    /// late, when this is cancelled.
    late: CancellationToken,
    suspends: bool,
    all: Mutex<Vec<Replica>>,
    suspended: Mutex<Option<Replica>>,
    was_hit: AtomicBool,
    is_ending: AtomicBool,
}

impl<'a> KilledReplicas<'a> {
    /// Sets the trap, and starts the first one.
    pub fn start(
        seed: &'a MemoryApi,
        kill: Option<Kill>,
        suspends: bool,
        user: &'static str,
        start: AgentStart,
    ) -> Result<Self> {
        let late = CancellationToken::new();
        let trap = kill.as_ref().map(|Kill { point, applied }| {
            let sender = Arc::<parking_lot::Mutex<String>>::default();
            let (mut wanted, last) = (point.clone(), sender.clone());
            wanted.before = 0;
            let is_it = move |record: &Record| {
                let is_it = record.is_write() && Point::of(record) == wanted;
                if is_it {
                    last.lock().clone_from(&record.user);
                }
                is_it
            };
            let fault = if *applied {
                Fault::StallAfter
            } else {
                Fault::Hold(late.clone())
            };
            let when = When::matches(is_it).after(point.before).once();
            (seed.faults().add(when, fault), sender)
        });
        Ok(Self {
            seed,
            kill,
            trap,
            late,
            suspends,
            all: Mutex::new(vec![(user, start.run()?)]),
            suspended: Mutex::default(),
            was_hit: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        })
    }

    /// Starts another one as soon as the first one has begun to take the lead.
    pub async fn join(&self, user: &'static str, start: AgentStart) -> Result<()> {
        // Who kills waits until there is a second one.
        let mut all = self.all.lock().await;
        requests(self.seed, 1, "the Lease is asked for", |record| {
            record.resource == LEASES
        })
        .await?;
        all.push((user, start.run()?));
        Ok(())
    }

    /// Tells the story to its orderly end.
    pub async fn play(&self, tale: impl Future<Output = Result<()>>) -> Result<Told> {
        let tale = async {
            tale.await?;
            let requests = self.seed.requests().total();
            self.is_ending.store(true, Ordering::Relaxed);
            for (user, replica) in self.all.lock().await.drain(..) {
                terminate(replica).await.context(user)?;
            }
            Ok(requests)
        };
        let played = tokio::select! {
            played = tale => played,
            Err(error) = self.strike() => Err(error),
            Err(error) = self.keep() => Err(error),
        };
        match played {
            Ok(ended) => Ok(Told {
                points: points(self.seed, ended),
                killed: self.was_hit.load(Ordering::Relaxed),
            }),
            Err(error) => {
                let all = self.all.lock().await;
                let logs = all
                    .iter()
                    .map(|(user, replica)| format!("the log of {user}:\n{}", replica.tail(25)));
                Err(error.context(logs.collect::<Vec<_>>().join("\n")))
            }
        }
    }

    /// Hits the one that sends the fatal write.
    async fn strike(&self) -> Result<()> {
        let Some((trap, sender)) = &self.trap else {
            return Ok(());
        };
        self.seed.faults().met(*trap, 1).await;
        let mut all = self.all.lock().await;
        let mut users = all.iter().map(|(user, _)| *user);
        let at = users.position(|user| *user == *sender.lock());
        let (user, mut replica) = all.remove(at.context("nobody sent it")?);
        if self.suspends {
            replica.pause(true)?;
            *self.suspended.lock().await = Some((user, replica));
        } else {
            replica.signal(Signal::SIGKILL)?;
            replica.end(END).await?;
            // Another process takes the place of one that was alone; otherwise the other one goes
            // on.
            if all.is_empty() {
                *replica = replica.again()?;
                all.push((user, replica));
            }
        }
        self.was_hit.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Starts those again that end by themselves, as a Deployment does: on a machine that does too
    /// much at once a leader cannot renew its Lease in time, and ends.
    async fn keep(&self) -> Result<()> {
        let mut ticks = interval(Duration::from_millis(200));
        loop {
            ticks.tick().await;
            for (_, replica) in self.all.lock().await.iter_mut() {
                if !self.is_ending.load(Ordering::Relaxed) && replica.ended()?.is_some() {
                    **replica = replica.again()?;
                }
            }
        }
    }

    /// Lets the suspended one go on after its late write has arrived: it has nothing left to say.
    pub async fn thaw(&self) -> Result<()> {
        let Some((user, mut replica)) = self.suspended.lock().await.take() else {
            return Ok(());
        };
        let log = self.seed.requests();
        let last = log.total();
        let open =
            |record: &&Record| record.user == user && scales(record) && record.status.is_none();
        let on_its_way = log
            .all()
            .iter()
            .find(open)
            .context("no write is on its way")?
            .number;
        self.late.cancel();
        if self.kill.as_ref().is_some_and(|kill| !kill.applied) {
            let refused =
                |record: &Record| record.number == on_its_way && record.status == Some(409);
            requests(self.seed, 1, "the late write is refused", refused).await?;
        }
        replica.pause(false)?;
        if !log
            .all()
            .iter()
            .any(|record| record.user == user && takes_lead(record))
        {
            // Whoever protected without the lead has none to lose, and goes on.
            self.all.lock().await.push((user, replica));
            return Ok(());
        }
        ends_with(1, &mut replica).await.context(user)?;
        // What it had handed to a connection when it was suspended may leave late; it names a
        // version that is gone.
        let harms = |record: &Record| {
            record.number >= last
                && record.user == user
                && scales(record)
                && record.status != Some(409)
        };
        let harm: Vec<_> = log.all().into_iter().filter(harms).collect();
        ensure!(harm.is_empty(), "{user} went on writing: {harm:?}");
        Ok(())
    }
}

/// Whether a request is a write to a dependent.
pub fn scales(record: &Record) -> bool {
    record.verb == "patch" && record.resource != "events"
}

/// Whether it is one with which a replica takes or keeps the lead.
pub fn takes_lead(record: &Record) -> bool {
    record.resource == LEASES && record.is_write() && matches!(record.status, Some(200 | 201))
}
