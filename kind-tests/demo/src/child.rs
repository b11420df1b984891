//! The real binary: two replicas of the prober, as processes with Gardener's own arguments.

use std::path::Path;
use std::process::ExitStatus;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use testbed::ProberConfig;
use testbed::agent::{Agent, GRACE, Kind, Start};

use crate::world::{REPLICAS, World};

/// Gardener's times that are shortened, for the audience.
pub const SHORTENED: &str =
    "probeInterval 10s (30s in Gardener), initialDelay 5s (30s), machine-controller-manager's delay 10s (30s)";
/// How much of the log's end is worth showing.
const TAIL_LINES: usize = 25;

/// The replicas of the prober.
pub struct Probers(Vec<Prober>);

/// One prober.
struct Prober {
    name: &'static str,
    agent: Agent,
    killed: bool,
}

impl Probers {
    /// Starts all at once; whoever creates the Lease first leads. Configuration, kubeconfigs and logs are files in `folder`.
    pub fn start(binary: &Path, folder: &Path, world: &World) -> Result<Self> {
        // As long as a probe may take in Gardener's.
        let (timeout, machine_delay) = ("30s", "10s");
        let config = ProberConfig { interval: "10s", initial_delay: "5s", timeout, machine_delay, ..ProberConfig::default() };
        let start = |name| {
            let mut start = Start::new(Kind::Prober, folder, name, &world.seed.kubeconfig(name), &config.text())?;
            start.binary = Some(binary.to_owned());
            // In a pod, the pod's name: by it the replica is called in the Lease.
            start.environment = vec![("HOSTNAME".to_owned(), name.to_owned())];
            Ok(Prober { name, agent: start.run()?, killed: false })
        };
        Ok(Self(REPLICAS.into_iter().map(start).collect::<Result<_>>()?))
    }

    /// Kills one as the kernel does when memory is short: it gets no chance to give up the Lease.
    pub fn kill(&mut self, name: &str) -> Result<()> {
        let prober = self.0.iter_mut().find(|prober| prober.name == name).with_context(|| format!("there is no {name}"))?;
        prober.agent.signal(Signal::SIGKILL)?;
        prober.killed = true;
        Ok(())
    }

    /// One that has ended, which it should not by itself.
    pub fn ended(&mut self) -> Result<Option<(&'static str, ExitStatus)>> {
        for prober in self.0.iter_mut().filter(|prober| !prober.killed) {
            if let Some(status) = prober.agent.ended()? {
                return Ok(Some((prober.name, status)));
            }
        }
        Ok(None)
    }

    /// Ends all that still run. Returns each one's name and how it ended: `None` if it had to be killed for this.
    pub async fn end(&mut self) -> Result<Vec<(&'static str, Option<ExitStatus>)>> {
        let mut endings = Vec::new();
        for Prober { name, agent, .. } in &mut self.0 {
            if agent.ended()?.is_none() {
                agent.signal(Signal::SIGTERM)?;
            }
            let ending = agent.end(GRACE).await.ok();
            if ending.is_none() {
                agent.signal(Signal::SIGKILL)?;
                agent.end(GRACE).await?;
            }
            endings.push((*name, ending));
        }
        Ok(endings)
    }

    /// The last lines of each log, under its path.
    pub fn tails(&self) -> Vec<(String, String)> {
        self.0.iter().map(|prober| (prober.agent.log_file().display().to_string(), prober.agent.tail(TAIL_LINES))).collect()
    }
}
