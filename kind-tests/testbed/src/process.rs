//! A program that runs for a test: its output goes to a file, and it never outlives the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::log::{lines, tail};
use crate::{reaper, secrets};

/// What Gardener grants an agent to end (rule 85).
const GRACE: Duration = Duration::from_secs(5);

/// How a program is started, once or again and again.
#[derive(Clone)]
pub struct Program {
    /// What it is called where something goes wrong.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables that only its processes have.
    pub environment: Vec<(String, String)>,
    /// Where its standard output and error are appended.
    pub log: PathBuf,
}

/// The words of a command line, none of which has a space.
pub fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(Into::into).collect()
}

/// A running program in a process group of its own. Dropping it kills the group.
pub struct Process {
    program: Program,
    child: Child,
    pid: Pid,
}

impl Program {
    /// One without environment variables of its own.
    pub fn new(name: &str, path: &Path, args: Vec<String>, log: &Path) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            args,
            environment: Vec::new(),
            log: log.into(),
        }
    }

    /// Starts it, with no proxy between it and this machine.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self) -> Result<Process> {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("cannot open {}", self.log.display()))?;
        let mut command = Command::new(&self.path);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "KUBECONFIG"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        let child = command
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .envs(self.environment.iter().cloned())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", self.path.display()))?;
        let pid = child.id().context("it has ended")?.try_into()?;
        reaper::register(pid)?;
        // The program under test may tell no credentials.
        if self.path.file_stem() == Some("dependency-watchdog".as_ref()) {
            secrets::all().watch(&self.log);
        }
        Ok(Process {
            program: self.clone(),
            child,
            pid: Pid::from_raw(pid),
        })
    }
}

impl Process {
    /// Starts a program.
    pub fn start(name: &str, path: &Path, args: &[String], log: &Path) -> Result<Self> {
        Program::new(name, path, args.into(), log).start()
    }

    /// Starts the same program once more.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn again(&self) -> Result<Self> {
        self.program.start()
    }

    /// Its process id, which is its process group's too.
    pub fn id(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Sends a signal to this process alone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill(self.pid, signal)
            .with_context(|| format!("cannot send {signal} to {}", self.program.name))
    }

    /// Holds it up, or lets it go on.
    pub fn pause(&self, paused: bool) -> Result<()> {
        self.signal(if paused {
            Signal::SIGSTOP
        } else {
            Signal::SIGCONT
        })
    }

    /// Asks it to end, as a kubelet does.
    pub async fn terminate(mut self) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM)?;
        self.end(GRACE).await
    }

    /// Its exit status, or none while it runs.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.ended(), Ok(None))
    }

    /// Waits for its end.
    pub async fn end(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let ended = tokio::time::timeout(deadline, self.child.wait()).await;
        let what = || format!("{} has not ended within {deadline:?}", self.program.name);
        Ok(ended.with_context(what)??)
    }

    /// The file that it writes its output to.
    pub fn log_file(&self) -> &Path {
        &self.program.log
    }

    /// Its log lines that are JSON and speak of `needle`.
    pub fn log(&self, needle: &str) -> Vec<Value> {
        lines(self.log_file(), needle)
    }

    /// The last lines of its output.
    pub fn tail(&self, lines: usize) -> String {
        tail(self.log_file(), lines, "")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_running() {
            // It may end at this very moment; then there is nothing left to kill.
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
        reaper::release(self.pid.as_raw());
    }
}
