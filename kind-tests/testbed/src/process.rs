//! A program that runs for a test: its output goes to a file, and it never outlives the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::log::tail;
use crate::{leash, secrets};

/// A running program in a process group of its own. Dropping it kills the group.
pub struct Process {
    name: String,
    child: Child,
    pid: Pid,
    log: PathBuf,
    /// Whether it is the program under test, which may tell no credentials.
    tested: bool,
}

impl Process {
    /// Starts a program, with no proxy between it and this machine; its standard output and error are appended to `log`.
    pub fn start(name: &str, program: &Path, args: &[String], log: &Path) -> Result<Self> {
        Self::start_in(&[], name, program, args, log)
    }

    /// The same with more environment variables.
    pub fn start_in(environment: &[(String, String)], name: &str, program: &Path, args: &[String], log: &Path) -> Result<Self> {
        let output =
            File::options().create(true).append(true).open(log).with_context(|| format!("cannot open {}", log.display()))?;
        let mut command = Command::new(program);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env_remove(name).env_remove(name.to_lowercase());
        }
        let child = command
            .args(args)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .env_remove("KUBECONFIG")
            .envs(environment.iter().cloned())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).ok_or_else(|| anyhow!("{name} has no process id"))?;
        leash::hold(pid)?;
        let tested = program.file_stem().is_some_and(|name| name == "dependency-watchdog");
        if tested {
            secrets::all().watch(log);
        }
        Ok(Self { name: name.into(), child, pid: Pid::from_raw(pid), log: log.into(), tested })
    }

    /// Its process id, which is its process group's too.
    pub fn id(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Sends a signal to this process alone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        if self.tested && matches!(signal, Signal::SIGTERM | Signal::SIGKILL) {
            secrets::all().search_pages(&self.log);
        }
        kill(self.pid, signal).with_context(|| format!("cannot send {signal} to {}", self.name))
    }

    /// Its exit status, or none while it runs.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for its end.
    pub async fn end(&mut self, deadline: Duration) -> Result<ExitStatus> {
        match tokio::time::timeout(deadline, self.child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => Err(anyhow!("{} has not ended within {deadline:?}", self.name)),
        }
    }

    /// The last lines of its output.
    pub fn tail(&self, lines: usize) -> String {
        tail(&self.log, lines, "")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            if self.tested {
                secrets::all().search_pages(&self.log);
            }
            // It may end at this very moment; then there is nothing left to kill.
            let _ = killpg(self.pid, Signal::SIGKILL);
        }
        leash::free(self.pid.as_raw());
    }
}
