//! One replica of the watchdog, as a Deployment keeps it: started again whenever it ends.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::agent::{Agent, Start};

/// Gardener grants the whole end 5 s (rule 85); a machine that does much at once may take longer to say so.
const END: Duration = Duration::from_secs(15);
/// It serves nothing: nothing but what it writes is looked at here.
pub const UNSERVED: [&str; 2] = ["--metrics-bind-addr=0", "--health-bind-addr=0"];

/// A replica.
pub struct Replica {
    start: Start,
    agent: Agent,
}

impl Replica {
    pub fn start(start: Start) -> Result<Self> {
        Ok(Self { agent: start.run()?, start })
    }

    /// Ends it as the kernel does, and starts another one in its place.
    pub async fn kill_and_replace(&mut self) -> Result<()> {
        self.kill().await?;
        self.agent = self.start.run()?;
        Ok(())
    }

    /// Ends it as the kernel does.
    pub async fn kill(&mut self) -> Result<()> {
        self.signal(Signal::SIGKILL)?;
        self.agent.end(END).await.map(drop)
    }

    /// Starts it again if it has ended.
    pub fn keep(&mut self) -> Result<()> {
        if self.agent.ended()?.is_some() {
            self.agent = self.start.run()?;
        }
        Ok(())
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.agent.signal(signal)
    }

    /// Waits until it has ended by itself; its exit code.
    pub async fn end(&mut self) -> Result<i32> {
        self.agent.end(END).await?.code().context("it was killed")
    }

    /// Asks it to end, which it must do well.
    pub async fn terminate(&mut self) -> Result<()> {
        self.signal(Signal::SIGTERM)?;
        let code = self.end().await?;
        ensure!(code == 0, "exit code {code}");
        Ok(())
    }

    pub fn tail(&self) -> String {
        self.agent.tail(25)
    }
}
