//! One replica: a process that is started again whenever it ends, as a Deployment does.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use api_server::{Rule, User};
use parking_lot::Mutex;
use testbed::agent::{AgentKind, AgentStart};
use testbed::log::tail;
use testbed::{eventually_within, gardener};
use tokio::time::{Instant, sleep};

use super::running::{AgentTask, ProcessFault, RunningReplica, Ways};
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

/// Where one of its processes writes its log.
fn log_of(start: &AgentStart, serial: usize) -> PathBuf {
    start.log.with_extension(format!("{serial}.log"))
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
    sent: Option<ProcessFault>,
}

impl AgentReplica {
    /// It is at work from now on, or is not.
    fn set_at_work(&self, at_work: bool) {
        let mut disturbances = self.world.oracle.disturbances();
        let since = at_work.then(Instant::now);
        disturbances.at_work.insert(self.name, since);
    }

    /// Who it is for the seed.
    pub fn user(&self) -> User {
        let mut user = match self.start.kind {
            AgentKind::Prober => gardener::seed_prober(),
            AgentKind::Weeder => gardener::seed_weeder(),
        };
        let stores = Rule::new("get,list,watch,patch", "stores.example.org");
        user.rules.get_or_insert_default().push(stores);
        // The same rights under a name of its own, so that the log of requests tells replicas apart.
        user.name = self.name.to_owned();
        user
    }

    pub fn is_running(&self) -> bool {
        self.state.lock().process.is_some()
    }

    /// Which of its processes runs now, or ran last.
    pub fn serial(&self) -> usize {
        self.state.lock().serial
    }

    /// Where the process that runs now, or ran last, writes its log.
    pub fn log(&self) -> PathBuf {
        log_of(&self.start, self.serial())
    }

    /// The id of the process.
    pub fn id(&self) -> Option<i32> {
        self.state.lock().process.as_ref()?.id()
    }

    /// Starts the process, with flags and environment variables of its own.
    pub fn start(&self, flags: &[String], environment: &[(String, String)]) -> Result<()> {
        let (serial, mut start) = (self.serial() + 1, self.start.clone().with(flags));
        start.environment = environment.to_vec();
        start.log = log_of(&start, serial);
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
            self.start(&[], &[])?;
        }
    }

    fn judge_end(&self, code: Option<i32>) {
        let oracle = &self.world.oracle;
        let sent = self.state.lock().sent;
        let steps_down = || !tail(&self.log(), 1, "leadership lost").is_empty();
        let excused = oracle.disturbances().excuse(self.name, Instant::now());
        match (sent, code) {
            (Some(ProcessFault::Killed), None) | (Some(ProcessFault::Terminated), Some(0)) => {}
            // It may be asked to end at the moment at which it loses the lead.
            (None | Some(ProcessFault::Terminated), Some(1)) if excused && steps_down() => {
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

    /// Asks it to end, as a kubelet does, and waits for that; it starts again.
    pub async fn terminate(&self) {
        self.strike(ProcessFault::Terminated);
        let serial = self.serial();
        let ended = eventually_within("it has ended", END, async || {
            let state = self.state.lock();
            ensure!(state.serial != serial || state.process.is_none(), "it runs");
            Ok(())
        });
        if ended.await.is_err() {
            self.failed(&format!("has not ended {END:?} after SIGTERM"));
            self.strike(ProcessFault::Killed);
        }
    }

    /// Cuts it off for a while.
    pub async fn cut_off(&self, from: Ways, time: Duration) {
        self.strike(ProcessFault::CutOff(from));
        sleep(time).await;
        self.strike(ProcessFault::Back(from));
    }

    /// Something happens to it, of which the oracle knows.
    pub fn strike(&self, fault: ProcessFault) {
        self.set_at_work(matches!(fault, ProcessFault::Back(_)));
        match fault {
            ProcessFault::CutOff(_) | ProcessFault::Back(_) => {
                self.world.oracle.disturbances().suspended = Some(Instant::now());
            }
            ends => self.state.lock().sent = Some(ends),
        }
        self.strike_unseen(fault);
    }

    /// The same, and the oracle does not know.
    pub fn strike_unseen(&self, fault: ProcessFault) {
        // One that has just ended, or is about to be started again, cannot be disturbed.
        if let Some(process) = &self.state.lock().process {
            process.strike(fault).ok();
        }
    }
}
