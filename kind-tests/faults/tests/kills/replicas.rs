//! The replicas of one story, of which one is hit at its fatal write.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Error, Result, ensure};
use nix::sys::signal::Signal;
use testbed::agent::Start;
use testbed::api::{MemoryApi, Record};
use tokio::sync::{Mutex, watch};
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::explorer::{Kill, Moment, Told, Trap, points};
use crate::process::Replica;
use crate::world::PATIENCE;

pub const LEASES: &str = "leases.coordination.k8s.io";

/// What befalls the replica that sends the fatal write.
#[derive(Clone, Debug)]
pub enum Blow {
    /// It is killed, and another process takes its place.
    Replace,
    /// It is killed, and the other replica goes on.
    Kill,
    /// It is suspended until all is over; a write that has not been applied is, late, when the token is cancelled.
    Suspend(CancellationToken),
}

/// The replicas, and whether one was hit as planned.
pub struct Replicas<'a> {
    seed: &'a MemoryApi,
    kill: Option<Kill>,
    trap: Option<Trap>,
    blow: Blow,
    all: Mutex<Vec<(&'static str, Replica)>>,
    suspended: Mutex<Option<(&'static str, Replica)>>,
    hit: watch::Sender<bool>,
    /// Set as soon as the story comes to its orderly end.
    ending: Arc<AtomicBool>,
}

impl<'a> Replicas<'a> {
    /// Sets the trap, and starts the first one.
    pub fn start(seed: &'a MemoryApi, kill: Option<Kill>, blow: Blow, user: &'static str, start: Start) -> Result<Self> {
        let ending = Arc::new(AtomicBool::new(false));
        let late = if let Blow::Suspend(late) = &blow { Some(late) } else { None };
        let trap = kill.as_ref().map(|kill| kill.prepare(seed, &ending, late));
        let all = Mutex::new(vec![(user, Replica::start(start)?)]);
        Ok(Self { seed, kill, trap, blow, all, suspended: Mutex::default(), hit: watch::Sender::new(false), ending })
    }

    /// Starts another one as soon as the first one has begun to take the lead.
    pub async fn join(&self, user: &'static str, start: Start) -> Result<()> {
        // Who kills waits until there is a second one.
        let mut all = self.all.lock().await;
        let asked = self.seed.requests().wait_for(|all| all.iter().any(|record| record.resource == LEASES).then_some(()));
        timeout(PATIENCE, asked).await?;
        all.push((user, Replica::start(start)?));
        Ok(())
    }

    /// Tells the story to its orderly end. `succeeds` waits until whoever follows one that was killed at the end is at work.
    pub async fn play(&self, tale: impl Future<Output = Result<()>>, succeeds: impl AsyncFn() -> Result<()>) -> Result<Told> {
        let tale = async {
            tale.await?;
            self.end(succeeds).await
        };
        let told = tokio::select! {
            told = tale => told,
            error = self.strike() => Err(error),
            error = self.keep() => Err(error),
        };
        match told {
            Ok(ended) => Ok(Told { points: points(self.seed, ended), killed: *self.hit.borrow() }),
            Err(error) => Err(error.context(self.tail().await)),
        }
    }

    /// Hits the one that sends the fatal write; returns only when that fails.
    async fn strike(&self) -> Error {
        if let Some(trap) = &self.trap
            && let Err(error) = self.hit(trap).await
        {
            return error;
        }
        std::future::pending().await
    }

    async fn hit(&self, trap: &Trap) -> Result<()> {
        let sender = trap.sprung(self.seed).await;
        let mut all = self.all.lock().await;
        let at = all.iter().position(|(user, _)| *user == sender).context("nobody sent it")?;
        match &self.blow {
            Blow::Replace => all[at].1.kill_and_replace().await?,
            Blow::Kill => all.remove(at).1.kill().await?,
            Blow::Suspend(_) => {
                let (user, replica) = all.remove(at);
                replica.signal(Signal::SIGSTOP)?;
                *self.suspended.lock().await = Some((user, replica));
            }
        }
        self.hit.send_replace(true);
        Ok(())
    }

    /// Starts those again that end by themselves, as a Deployment does: on a machine that does too much at once a leader cannot
    /// renew its Lease in time, and ends.
    async fn keep(&self) -> Error {
        let mut looks = interval(Duration::from_millis(200));
        loop {
            looks.tick().await;
            let mut all = self.all.lock().await;
            if self.ending.load(Ordering::Relaxed) {
                continue;
            }
            for (_, replica) in all.iter_mut() {
                if let Err(error) = replica.keep() {
                    return error;
                }
            }
        }
    }

    /// Asks all to end, and waits until they have, well; how many requests there were before.
    async fn end(&self, succeeds: impl AsyncFn() -> Result<()>) -> Result<u64> {
        let before = self.seed.requests().total();
        self.ending.store(true, Ordering::Relaxed);
        self.terminate().await?;
        if self.kill.as_ref().is_some_and(Kill::is_at_the_end) {
            let _ = timeout(PATIENCE, self.hit.subscribe().wait_for(|hit| *hit)).await?;
            succeeds().await?;
            self.terminate().await?;
        }
        for (user, replica) in self.all.lock().await.iter_mut() {
            let code = replica.end().await?;
            ensure!(code == 0, "{user}: exit code {code}");
        }
        Ok(before)
    }

    async fn terminate(&self) -> Result<()> {
        self.all.lock().await.iter().try_for_each(|(_, replica)| replica.signal(Signal::SIGTERM))
    }

    /// Lets the suspended one go on after its late write has arrived: it has nothing left to say.
    pub async fn thaw(&self) -> Result<()> {
        let Some((user, mut replica)) = self.suspended.lock().await.take() else { return Ok(()) };
        let requests = self.seed.requests();
        let last = requests.total();
        let open = |record: &&Record| record.user == user && scales(record) && record.status.is_none();
        let on_its_way = requests.all().iter().find(open).context("no write is on its way")?.number;
        if let Blow::Suspend(late) = &self.blow {
            late.cancel();
        }
        if self.kill.as_ref().is_some_and(|kill| kill.moment == Moment::Before) {
            let refused = |all: &VecDeque<Record>| {
                all.iter().any(|record| record.number == on_its_way && record.status == Some(409)).then_some(())
            };
            timeout(PATIENCE, requests.wait_for(refused)).await.context("the late write is not refused")?;
        }
        replica.signal(Signal::SIGCONT)?;
        if !requests.all().iter().any(|record| record.user == user && takes_lead(record)) {
            // Whoever protected without the lead has none to lose, and goes on.
            self.all.lock().await.push((user, replica));
            return Ok(());
        }
        let code = replica.end().await?;
        ensure!(code == 1, "{user}: exit code {code}\n{}", replica.tail());
        // What it had handed to a connection when it was suspended may leave late; it names a version that is gone.
        let harm: Vec<_> = requests.all().into_iter().filter(|r| r.number >= last && r.user == user && took_effect(r)).collect();
        ensure!(harm.is_empty(), "{user} went on writing: {harm:?}");
        Ok(())
    }

    /// What they say, for a person who reads why a story went wrong.
    async fn tail(&self) -> String {
        let all = self.all.lock().await;
        all.iter().map(|(user, replica)| format!("the log of {user}:\n{}", replica.tail())).collect::<Vec<_>>().join("\n")
    }
}

/// Whether a request is a write to a dependent.
pub fn scales(record: &Record) -> bool {
    record.verb == "patch" && record.resource != "events"
}

/// Whether it is one that was not refused for naming a version that is gone.
pub fn took_effect(record: &Record) -> bool {
    scales(record) && record.status != Some(409)
}

/// Whether it is one with which a replica takes or keeps the lead.
pub fn takes_lead(record: &Record) -> bool {
    record.resource == LEASES && record.is_write() && matches!(record.status, Some(200 | 201))
}
