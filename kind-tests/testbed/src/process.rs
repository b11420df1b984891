//! A program that runs for a test: its output goes to a file, and it never outlives the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::log::tail;
use crate::{reaper, secrets};

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

/// A running program in a process group of its own. Dropping it kills the group.
pub struct Process {
    program: Program,
    child: Child,
    pid: Pid,
    /// Whether it is the program under test, which may tell no credentials.
    tested: bool,
}

impl Program {
    /// Starts it, with no proxy between it and this machine.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self) -> Result<Process> {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.with_context(|| format!("cannot open {}", self.log.display()))?;
        let mut command = Command::new(&self.path);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        let child = command
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .env_remove("KUBECONFIG")
            .envs(self.environment.iter().cloned())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", self.path.display()))?;
        let pid = child.id().context("it has ended")?.try_into()?;
        reaper::register(pid)?;
        let tested = self.path.file_stem() == Some("dependency-watchdog".as_ref());
        if tested {
            secrets::all().watch(&self.log);
        }
        Ok(Process {
            program: self.clone(),
            child,
            pid: Pid::from_raw(pid),
            tested,
        })
    }
}

impl Process {
    /// Starts a program.
    pub fn start(name: &str, path: &Path, args: &[String], log: &Path) -> Result<Self> {
        Program {
            name: name.into(),
            path: path.into(),
            args: args.into(),
            environment: Vec::new(),
            log: log.into(),
        }
        .start()
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
        if self.tested && matches!(signal, Signal::SIGTERM | Signal::SIGKILL) {
            secrets::all().search_pages(&self.program.log);
        }
        kill(self.pid, signal)
            .with_context(|| format!("cannot send {signal} to {}", self.program.name))
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
        Ok(ended.with_context(|| {
            format!("{} has not ended within {deadline:?}", self.program.name)
        })??)
    }

    /// The file that it writes its output to.
    pub fn log_file(&self) -> &Path {
        &self.program.log
    }

    /// The last lines of its output.
    pub fn tail(&self, lines: usize) -> String {
        tail(self.log_file(), lines, "")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_running() {
            if self.tested {
                secrets::all().search_pages(&self.program.log);
            }
            // It may end at this very moment; then there is nothing left to kill.
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
        reaper::release(self.pid.as_raw());
    }
}
