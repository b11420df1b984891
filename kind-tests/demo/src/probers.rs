//! The real binary: two replicas of the prober, as processes with Gardener's own arguments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use api_server::MemoryApi;
use testbed::ProberConfig;
use testbed::agent::{AgentKind, AgentStart, RunningAgent};

use crate::scene::REPLICAS;

/// Gardener's times that are shortened, for viewers.
pub const SHORTENED: &str = "probeInterval 10s (30s in Gardener), initialDelay 5s (30s), machine-controller-manager's delay 10s (30s)";

/// The log of each.
pub fn logs(folder: &Path) -> [PathBuf; 2] {
    REPLICAS.map(|name| folder.join(format!("{name}.log")))
}

/// The replicas of the prober that run, by name. Dropping it kills them.
pub struct Probers(BTreeMap<&'static str, RunningAgent>);

impl Probers {
    /// Starts all at once; whoever creates the Lease first leads. Configuration, kubeconfigs and
    /// logs are files in `folder`.
    pub fn start(binary: &Path, folder: &Path, seed: &MemoryApi) -> Result<Self> {
        // As long as a probe may take in Gardener's.
        let (timeout, machine_delay) = ("30s", "10s");
        let config = ProberConfig {
            interval: "10s",
            initial_delay: "5s",
            timeout,
            machine_delay,
            ..ProberConfig::default()
        };
        let start = |name| {
            let mut start = AgentStart::new(
                AgentKind::Prober,
                folder,
                name,
                &seed.kubeconfig(name),
                &config.text(),
            )?;
            start.binary = Some(binary.to_owned());
            // In a pod, the pod's name: by it the replica is called in the Lease.
            start.environment = vec![("HOSTNAME".to_owned(), name.to_owned())];
            Ok((name, start.run()?))
        };
        Ok(Self(
            REPLICAS.into_iter().map(start).collect::<Result<_>>()?,
        ))
    }

    /// Kills one as the kernel does when memory is short: it gets no chance to give up the Lease.
    pub fn kill(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Fails when one has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        for (name, agent) in &mut self.0 {
            if let Some(status) = agent.ended()? {
                bail!("{name} ended by itself, with {status}");
            }
        }
        Ok(())
    }

    /// Asks one to end, and returns its exit code; `None` if it has to be killed.
    pub async fn end(mut self, name: &str) -> Option<i32> {
        self.0.remove(name)?.terminate().await.ok()?.code()
    }
}
