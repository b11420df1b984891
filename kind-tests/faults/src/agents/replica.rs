//! One replica: a process that is started again whenever it ends, as a Deployment does.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result};
use faults::lock;
use nix::sys::signal::Signal;
use testbed::agent::{Agent, Kind, Start};
use testbed::log::tail;
use testbed::page::address;
use tokio::time::{Instant, sleep, timeout};

use crate::oracle::disturbances::Disturbance;
use crate::oracle::ledger::Kind as Found;
use crate::pace::{ELECTION, HAND_OVER, ON_GUARD};
use crate::world::World;

/// How often it is looked whether the process still runs.
const LOOK: Duration = Duration::from_millis(100);
/// Gardener grants the pod so long for its end (rule 85); the rest is for a busy machine.
const END: Duration = Duration::from_secs(8);
/// Between the end of a process and the start of the next one.
const RESTART: Duration = Duration::from_millis(500);
/// For so long a disturbance can be why a leader steps down.
const EXCUSE: Duration = Duration::from_secs(20);

/// A log that has grown larger is emptied when it has been looked through: hours of it would fill the memory.
const MAX_LOG: usize = 16 << 20;

/// A replica.
pub struct Replica {
    pub name: String,
    pub kind: Kind,
    world: Arc<World>,
    folder: PathBuf,
    start: Start,
    state: Mutex<State>,
}

struct State {
    process: Option<Agent>,
    serial: usize,
    /// What we have sent that ends it.
    sent: Option<Signal>,
    /// When something last happened that may make a leader step down.
    disturbed: Instant,
    /// Where the process serves its metrics, once it is known.
    address: Option<String>,
    /// Whether a process that ends is to be followed by another.
    wanted: bool,
}

impl Replica {
    /// A replica that does not run yet.
    pub fn new(world: Arc<World>, name: &str, folder: &Path, start: Start) -> Self {
        let [duration, deadline, retry] = ELECTION.map(|time| time.as_secs());
        let start = start.with([
            format!("--leader-elect-lease-duration={duration}s"),
            format!("--leader-elect-renew-deadline={deadline}s"),
            format!("--leader-elect-retry-period={retry}s"),
            "--zap-log-level=INFO".to_owned(),
        ]);
        let state = State { process: None, serial: 0, sent: None, disturbed: Instant::now(), address: None, wanted: true };
        Self { name: name.to_owned(), kind: start.kind, world, folder: folder.to_owned(), start, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn disturbance(&self, change: impl FnOnce(&mut Disturbance)) {
        let mut disturbances = lock(&self.world.oracle.disturbances);
        change(match self.kind {
            Kind::Prober => &mut disturbances.probers,
            Kind::Weeder => &mut disturbances.weeders,
        });
    }

    /// A prober is at work from now on, or is not.
    fn on_guard(&self, at_work: bool) {
        let guards = &mut lock(&self.world.oracle.disturbances).guards;
        match (self.kind, at_work) {
            (Kind::Prober, true) => drop(guards.insert(self.name.clone(), Instant::now() + ON_GUARD)),
            _ => drop(guards.remove(&self.name)),
        }
    }

    fn log_of(&self, serial: usize) -> PathBuf {
        self.folder.join(format!("{}-{serial}.log", self.name))
    }

    /// Where the process that runs now, or ran last, writes its log; and how many there were before it.
    pub fn log(&self) -> (PathBuf, usize) {
        let serial = self.state().serial;
        (self.log_of(serial), serial)
    }

    /// The id of the process.
    pub fn id(&self) -> Option<i32> {
        self.state().process.as_ref().map(|agent| agent.id())
    }

    /// Starts the process.
    pub fn start(&self) -> Result<()> {
        let mut state = self.state();
        state.serial += 1;
        (state.sent, state.disturbed, state.address) = (None, Instant::now(), None);
        let log = self.log_of(state.serial);
        state.process = Some(Start { log, ..self.start.clone() }.run()?);
        drop(state);
        self.on_guard(true);
        if self.kind == Kind::Weeder {
            self.world.oracle.weeder.starts();
        }
        Ok(())
    }

    /// Something happens to the seed or to this process after which a leader may step down.
    pub fn disturb(&self) {
        self.state().disturbed = Instant::now();
    }

    /// Starts the process again whenever it ends, and judges its end.
    pub async fn keep(&self) -> Result<()> {
        loop {
            sleep(LOOK).await;
            let ended = {
                let mut state = self.state();
                match state.process.as_mut() {
                    Some(process) => process.ended()?,
                    None => continue,
                }
            };
            let Some(status) = ended else { continue };
            self.on_guard(false);
            self.disturbance(Disturbance::begin);
            // If all of this machine stood still, that is known by then.
            sleep(RESTART).await;
            self.judge_end(status.code());
            self.state().process = None;
            sleep(RESTART).await;
            // The sender is a field of the world.
            self.world.configs_good.subscribe().wait_for(|good| *good).await.ok();
            let wanted = self.state().wanted;
            if wanted {
                self.start()?;
            }
            self.disturbance(|disturbance| disturbance.end(Instant::now() + HAND_OVER));
        }
    }

    fn judge_end(&self, code: Option<i32>) {
        let (sent, disturbed) = {
            let state = self.state();
            (state.sent, state.disturbed)
        };
        let excused = disturbed.elapsed() < EXCUSE || self.world.oracle.reading(Instant::now()).lag > ELECTION[2];
        let why = match (sent, code) {
            (Some(Signal::SIGKILL), None) | (Some(Signal::SIGTERM), Some(0)) => None,
            // Asked to end at the moment at which it lost the lead.
            (Some(Signal::SIGTERM), Some(1)) if excused => None,
            (None, Some(1)) if excused && self.stepped_down() => {
                self.world.oracle.ledger.count("leaders that stepped down");
                let why = tail(&self.log().0, 3, "ease");
                println!("{:6.0} s  {} steps down:\n{why}", self.world.oracle.ledger.start.elapsed().as_secs_f64(), self.name);
                None
            }
            // It was started at the moment at which its config was made unreadable, and rightly refuses to begin.
            (None, Some(1)) if !*self.world.configs_good.borrow() && self.metrics_address().is_none() => None,
            (sent, code) => Some(format!("ended with {code:?} after {sent:?}")),
        };
        if let Some(why) = why {
            self.failed(why, 30);
        }
        self.inspect();
    }

    /// The process did what none may do; the last lines of its log are the evidence.
    fn failed(&self, why: String, lines: usize) {
        let story = tail(&self.log().0, lines, "").lines().map(str::to_owned).collect();
        self.world.oracle.ledger.found(Found::Process, &self.name, why, story);
    }

    fn stepped_down(&self) -> bool {
        !tail(&self.log().0, 1, "leadership lost").is_empty()
    }

    /// Looks through the log of the process for what must never stand there.
    pub fn inspect(&self) {
        let (log, serial) = self.log();
        let text = std::fs::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let own = format!("soak-{}-token", self.name);
        // The last one is how tokens of a real API server begin.
        for (word, what) in [("panicked", "a panic"), ("soak-probe-token", "a token"), (&own, "a token"), ("eyJhbGci", "a token")]
        {
            if let Some(line) = text.lines().find(|line| line.contains(word)) {
                self.failed(format!("{what} in its log: {line}"), 0);
            }
        }
        if text.len() > MAX_LOG && self.metrics_address().is_some() {
            // It is written to at its end, wherever that is.
            let emptied = std::fs::File::options().write(true).open(&log).and_then(|file| file.set_len(0));
            emptied.unwrap_or_else(|error| eprintln!("{}: {error}", log.display()));
        }
        // The files of those before are evidence no more.
        for old in 1..serial.saturating_sub(2) {
            std::fs::remove_file(self.log_of(old)).ok();
        }
    }

    /// What its last processes told of a shoot.
    pub fn told(&self, namespace: &str) -> Vec<String> {
        let (_, serial) = self.log();
        let logs = (serial.saturating_sub(1).max(1)..=serial).map(|serial| self.log_of(serial));
        logs.flat_map(|log| tail(&log, 25, namespace).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// Asks it to end, as a kubelet does; it starts again.
    pub async fn terminate(&self) -> Result<()> {
        self.on_guard(false);
        self.signal(Signal::SIGTERM)?;
        let begin = Instant::now();
        let serial = self.state().serial;
        while begin.elapsed() < END {
            sleep(LOOK).await;
            let state = self.state();
            if state.serial != serial || state.process.is_none() {
                return Ok(());
            }
        }
        self.failed(format!("has not ended {END:?} after SIGTERM"), 30);
        self.signal(Signal::SIGKILL)
    }

    /// Kills it; it starts again.
    pub fn kill(&self) -> Result<()> {
        self.on_guard(false);
        self.signal(Signal::SIGKILL)
    }

    /// It is suspended or goes on now.
    fn suspended(&self) {
        lock(&self.world.oracle.disturbances).suspended = Some(Instant::now());
    }

    /// Suspends it for a while.
    pub async fn suspend(&self, time: Duration) -> Result<()> {
        self.disturbance(Disturbance::begin);
        self.suspended();
        self.on_guard(false);
        self.signal(Signal::SIGSTOP)?;
        sleep(time).await;
        self.signal(Signal::SIGCONT)?;
        self.on_guard(true);
        self.suspended();
        self.disturbance(|disturbance| disturbance.end(Instant::now() + HAND_OVER));
        self.disturb();
        Ok(())
    }

    /// Sends a signal, without a word to the oracle.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let mut state = self.state();
        state.disturbed = Instant::now();
        if matches!(signal, Signal::SIGKILL | Signal::SIGTERM) {
            state.sent = Some(signal);
        }
        // One that is about to be started again cannot be disturbed.
        state.process.as_ref().map_or(Ok(()), |process| process.signal(signal).or(Ok(())))
    }

    /// Ends it for good.
    pub async fn end(&self) -> Result<()> {
        self.state().wanted = false;
        timeout(2 * END, self.terminate()).await.context("it does not end")?
    }

    /// Where it serves its metrics, as it told in its log.
    pub fn metrics_address(&self) -> Option<String> {
        let log = self.log().0;
        let mut state = self.state();
        if state.address.is_none() {
            state.address = address(&log, "/metrics").ok();
        }
        state.address.clone()
    }
}
