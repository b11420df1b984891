//! One replica: a process that is started again whenever it ends, as a Deployment does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use api_server::{Rule, User};
use nix::sys::signal::Signal;
use parking_lot::Mutex;
use testbed::agent::{AgentKind, AgentStart};
use testbed::log::tail;
use testbed::{eventually_within, gardener};
use tokio::time::{Instant, sleep};

use super::running::{AgentTask, CutOff, RunningReplica};
use crate::oracle::violations::ViolationKind;
use crate::world::SoakWorld;

/// How often it is checked whether the process still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Gardener grants the pod so long for its end (rule 85); the rest is for a busy machine.
const END: Duration = Duration::from_secs(8);
/// Between the end of a process and the start of the next one.
const RESTART: Duration = Duration::from_secs(1);

/// So many of the last lines of a log are evidence.
const LINES: usize = 30;

/// A replica.
pub struct AgentReplica {
    pub name: &'static str,
    pub start: AgentStart,
    pub(super) world: Arc<SoakWorld>,
    pub(super) state: Mutex<AgentProcess>,
}

/// What a replica asks the seed with.
pub fn token(name: &str) -> String {
    format!("soak-{name}-token")
}

/// What its process is like; none has run yet by default.
#[derive(Default)]
pub(super) struct AgentProcess {
    process: Option<RunningReplica>,
    /// How many processes there have been.
    serial: usize,
    /// What we have sent that ends it.
    sent: Option<Signal>,
}

impl AgentReplica {
    /// It is at work from now on, or is not.
    fn set_at_work(&self, at_work: bool) {
        let mut disturbances = self.world.oracle.disturbances();
        let since = at_work.then(Instant::now);
        disturbances.at_work.insert(self.name, since);
    }

    /// What it asks the seed with.
    pub fn token(&self) -> String {
        token(self.name)
    }

    /// Who it is for the seed.
    pub fn user(&self) -> User {
        let user = match self.start.kind {
            AgentKind::Prober => gardener::seed_prober(),
            AgentKind::Weeder => gardener::seed_weeder(),
        };
        let stores = Rule::new("get,list,watch,patch", "stores.example.org");
        // The same rights under a name of its own, so that the log of requests tells replicas apart.
        User {
            name: self.name.to_owned(),
            rules: user.rules.map(|rules| [rules, vec![stores]].concat()),
        }
    }

    pub fn is_running(&self) -> bool {
        self.state.lock().process.is_some()
    }

    /// Which of its processes runs now, or ran last.
    pub fn serial(&self) -> usize {
        self.state.lock().serial
    }

    fn log_of(&self, serial: usize) -> PathBuf {
        self.start.log.with_extension(format!("{serial}.log"))
    }

    /// Where the process that runs now, or ran last, writes its log.
    pub fn log(&self) -> PathBuf {
        self.log_of(self.serial())
    }

    /// The id of the process.
    pub fn id(&self) -> Option<i32> {
        self.state.lock().process.as_ref()?.id()
    }

    /// Starts the process.
    pub fn start(&self) -> Result<()> {
        self.start_as(|start| start)
    }

    /// The same, started otherwise.
    pub fn start_as(&self, change: impl FnOnce(AgentStart) -> AgentStart) -> Result<()> {
        let (serial, mut start) = (self.serial() + 1, change(self.start.clone()));
        start.log = self.log_of(serial);
        self.world.credentials.watch(&start.log);
        let process = Some(match start.binary {
            Some(_) => RunningReplica::Process(Box::new(start.run()?)),
            None => RunningReplica::Task(AgentTask::start(&start, self.name, &self.world)?),
        });
        *self.state.lock() = AgentProcess {
            process,
            serial,
            sent: None,
        };
        self.set_at_work(true);
        if start.kind == AgentKind::Weeder {
            self.world.oracle.disturbances().weeder_started = Instant::now();
        }
        Ok(())
    }

    /// Waits for the end of the process, and judges it.
    pub async fn ended(&self) -> Result<()> {
        let code = loop {
            if let Some(agent) = &mut self.state.lock().process
                && let Some(code) = agent.ended()?
            {
                break code;
            }
            sleep(POLL_INTERVAL).await;
        };
        self.judge_end(code);
        self.set_at_work(false);
        self.state.lock().process = None;
        Ok(())
    }

    /// Starts the process again whenever it ends, and judges its end.
    pub async fn keep(&self) -> Result<()> {
        loop {
            self.ended().await?;
            sleep(RESTART).await;
            self.start()?;
        }
    }

    fn judge_end(&self, code: Option<i32>) {
        let oracle = &self.world.oracle;
        let sent = self.state.lock().sent;
        let steps_down = || !tail(&self.log(), 1, "leadership lost").is_empty();
        let excused = oracle.disturbances().excuse(self.name, Instant::now());
        match (sent, code) {
            (Some(Signal::SIGKILL), None) | (Some(Signal::SIGTERM), Some(0)) => {}
            // It may be asked to end at the moment at which it loses the lead.
            (None | Some(Signal::SIGTERM), Some(1)) if excused && steps_down() => {
                oracle.violations.count("leaders that stepped down");
            }
            (sent, code) => self.failed(&format!("ended with {code:?} after {sent:?}")),
        }
        self.search_log();
    }

    /// The process did what none may do; the last lines of its log are the evidence.
    fn failed(&self, why: &str) {
        let text = format!("{why}:\n{}", tail(&self.log(), LINES, ""));
        let kind = ViolationKind::ProcessFailures;
        self.world.oracle.violations.found(kind, self.name, &text);
    }

    /// Searches the log of the process for a panic.
    pub fn search_log(&self) {
        let panic = tail(&self.log(), 1, "panic");
        if !panic.is_empty() {
            self.failed(&panic);
        }
    }

    /// What its last processes logged of a shoot.
    pub fn logged(&self, namespace: &str) -> String {
        let serial = self.serial();
        let logs = [serial.saturating_sub(1), serial]
            .map(|serial| tail(&self.log_of(serial), 25, namespace));
        logs.join("\n").trim().to_owned()
    }

    /// Asks it to end, as a kubelet does, and waits for that; it starts again.
    pub async fn terminate(&self) {
        self.signal(Signal::SIGTERM);
        let serial = self.serial();
        let ended = eventually_within("it has ended", END, async || {
            let state = self.state.lock();
            ensure!(state.serial != serial || state.process.is_none(), "it runs");
            Ok(())
        });
        if ended.await.is_err() {
            self.failed(&format!("has not ended {END:?} after SIGTERM"));
            self.signal(Signal::SIGKILL);
        }
    }

    /// Cuts it off for a while.
    pub async fn cut_off(&self, from: CutOff, time: Duration) {
        self.cut(from, true);
        sleep(time).await;
        self.cut(from, false);
    }

    /// Cuts it off, or no longer.
    pub fn cut(&self, from: CutOff, is_cut: bool) {
        self.set_at_work(!is_cut);
        self.world.oracle.disturbances().suspended = Some(Instant::now());
        // One that has just ended, or is about to be started again, cannot be cut off.
        if let Some(process) = &self.state.lock().process {
            process.cut(from, is_cut).ok();
        }
    }

    /// Sends a signal, of which the oracle knows only if it ends the process.
    pub fn signal(&self, signal: Signal) {
        let ends = matches!(signal, Signal::SIGKILL | Signal::SIGTERM);
        if ends {
            self.set_at_work(false);
        }
        let mut state = self.state.lock();
        state.sent = Some(signal).filter(|_| ends).or(state.sent);
        // One that has just ended, or is about to be started again, cannot be disturbed.
        if let Some(process) = &state.process {
            process.signal(signal).ok();
        }
    }
}
