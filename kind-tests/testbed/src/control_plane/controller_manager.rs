//! Controller managers that run and end as the Deployments that they stand for want it.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;
use tokio::net::TcpSocket;
use tokio::time::Instant;

use super::reserve_port;
use crate::process::{Process, Program};
use crate::reaper;

/// Kubernetes' default terminationGracePeriodSeconds.
const TERMINATION_GRACE: Duration = Duration::from_secs(30);

/// The programs of one pod, which can be stopped and started again.
pub struct ControllerManager {
    programs: Vec<Program>,
    processes: Vec<Process>,
    /// Their ports, which nobody else gets while they do not run.
    _ports: Vec<TcpSocket>,
}

impl ControllerManager {
    /// Prepares kube-controller-manager, with nothing but the controllers that give nodes up and
    /// write endpoints, for the cluster of `kubeconfig`; a node whose lease is older than `grace`
    /// is marked Unknown.
    pub fn new(programs: &Path, kubeconfig: &str, grace: Duration) -> Result<Self> {
        let folder = reaper::folder("kube-controller-manager")?;
        let path = folder.join("kubeconfig");
        std::fs::write(&path, kubeconfig)?;
        let args = vec![
            format!("--kubeconfig={}", path.display()),
            "--controllers=node-lifecycle-controller,endpointslice-controller".into(),
            format!("--node-monitor-grace-period={}s", grace.as_secs()),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
            // As Gardener has it; a fifth of that is the default.
            "--kube-api-qps=100".into(),
            "--kube-api-burst=200".into(),
        ];
        let name = "kube-controller-manager";
        let (path, log) = (programs.join(name), folder.join("log"));
        let program = Program {
            name: name.into(),
            path,
            args,
            environment: Vec::new(),
            log,
        };
        Self::of(vec![program], &[])
    }

    /// Prepares the programs of one pod, which listen on these ports.
    pub fn of(programs: Vec<Program>, ports: &[u16]) -> Result<Self> {
        let ports = ports.iter().map(|port| reserve_port(*port));
        Ok(Self {
            programs,
            processes: Vec::new(),
            _ports: ports.collect::<Result<_>>()?,
        })
    }

    /// Starts it. If a part has ended by itself, all are started again.
    pub fn start(&mut self) -> Result<()> {
        self.processes.clear();
        self.processes = self
            .programs
            .iter()
            .map(Program::start)
            .collect::<Result<_>>()?;
        Ok(())
    }

    /// Asks it to end, as a kubelet does, and waits for that; how long it took.
    pub async fn terminate(&mut self) -> Result<Duration> {
        let began = Instant::now();
        for mut process in std::mem::take(&mut self.processes) {
            process.signal(Signal::SIGTERM)?;
            process.end(TERMINATION_GRACE).await?;
        }
        Ok(began.elapsed())
    }

    /// Whether all of it runs.
    pub fn is_running(&mut self) -> bool {
        !self.processes.is_empty() && self.processes.iter_mut().all(Process::is_running)
    }

    /// The last lines that its parts have said.
    pub fn tail(&self, lines: usize) -> String {
        let tail =
            |part: &Program| format!("{}:\n{}", part.name, crate::log::tail(&part.log, lines, ""));
        let tails: Vec<String> = self.programs.iter().map(tail).collect();
        tails.join("\n")
    }
}
