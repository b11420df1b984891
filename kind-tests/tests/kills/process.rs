//! One replica of the watchdog, as a Deployment keeps it: started again whenever it ends.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kind_tests::prober::binary;
use kind_tests::process::Process;
use nix::sys::signal::Signal;

/// Gardener grants the whole end 5 s (rule 85); a machine that does much at once may take longer to say so.
const END: Duration = Duration::from_secs(15);

/// How a replica is started.
#[derive(Clone)]
pub struct Start {
    pub agent: &'static str,
    pub folder: PathBuf,
    /// Of the config in that folder, and of the kubeconfig.
    pub user: &'static str,
    pub args: Vec<String>,
    /// Environment variables that only this process has.
    pub environment: Vec<(String, String)>,
}

/// A replica.
pub struct Replica {
    start: Start,
    process: Process,
}

impl Replica {
    pub fn start(start: Start) -> Result<Self> {
        let file = |name: &str| start.folder.join(name).display().to_string();
        let mut args = vec![
            start.agent.to_owned(),
            format!("--config-file={}", file("config.yaml")),
            format!("--kubeconfig={}", file(start.user)),
        ];
        args.extend(["metrics", "health", "pprof"].map(|server| format!("--{server}-bind-addr=0")));
        args.extend(start.args.iter().cloned());
        let process = Process::start_in(
            &start.environment,
            start.agent,
            &binary()?,
            &args,
            &start.folder.join(format!("{}.log", start.user)),
        )?;
        Ok(Self { start, process })
    }

    /// Ends it as the kernel does, and starts another one in its place.
    pub async fn kill_and_replace(&mut self) -> Result<()> {
        self.kill().await?;
        self.process = Self::start(self.start.clone())?.process;
        Ok(())
    }

    /// Ends it as the kernel does.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.signal(Signal::SIGKILL)?;
        self.process.end(END).await.map(drop)
    }

    /// Starts it again if it has ended.
    pub fn keep(&mut self) -> Result<()> {
        if self.process.ended()?.is_some() {
            self.process = Self::start(self.start.clone())?.process;
        }
        Ok(())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.process.signal(signal)
    }

    /// Waits until it has ended by itself; its exit code.
    pub async fn end(&mut self) -> Result<i32> {
        self.process.end(END).await?.code().context("it was killed")
    }

    /// Asks it to end, which it must do well.
    pub async fn terminate(&mut self) -> Result<()> {
        self.signal(Signal::SIGTERM)?;
        let code = self.end().await?;
        ensure!(code == 0, "exit code {code}");
        Ok(())
    }

    pub fn tail(&self) -> String {
        self.process.tail(25)
    }
}
