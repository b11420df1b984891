//! kube-controller-manager with nothing but the controller that gives nodes up.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;
use tokio::time::Instant;

use crate::leash;
use crate::process::{Process, Program};

/// Kubernetes' default terminationGracePeriodSeconds.
const TERMINATION_GRACE: Duration = Duration::from_secs(30);

/// A kube-controller-manager that can be stopped and started like the Deployment it stands for.
pub struct ControllerManager {
    program: Program,
    process: Option<Process>,
}

impl ControllerManager {
    /// Prepares one for the cluster of `kubeconfig`; a node whose lease is older than `grace` is marked Unknown.
    pub fn new(programs: &Path, kubeconfig: &str, grace: Duration) -> Result<Self> {
        let folder = leash::folder("kube-controller-manager")?;
        let path = folder.join("kubeconfig");
        std::fs::write(&path, kubeconfig)?;
        let args = vec![
            format!("--kubeconfig={}", path.display()),
            "--controllers=node-lifecycle-controller".into(),
            format!("--node-monitor-grace-period={}s", grace.as_secs()),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
        ];
        let name = "kube-controller-manager";
        let (path, log) = (programs.join(name), folder.join("log"));
        Ok(Self { program: Program { name: name.into(), path, args, environment: Vec::new(), log }, process: None })
    }

    /// Runs it, or ends it.
    pub fn set_running(&mut self, running: bool) -> Result<()> {
        if running && self.process.is_none() {
            self.process = Some(self.program.start()?);
        } else if !running {
            self.process = None;
        }
        Ok(())
    }

    /// Asks it to end, as a kubelet does, and waits for that; how long it took, or none if it did not run.
    pub async fn terminate(&mut self) -> Result<Option<Duration>> {
        let Some(mut process) = self.process.take() else { return Ok(None) };
        let began = Instant::now();
        process.signal(Signal::SIGTERM)?;
        process.end(TERMINATION_GRACE).await?;
        Ok(Some(began.elapsed()))
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| matches!(process.ended(), Ok(None)))
    }

    /// The last lines of its output.
    pub fn tail(&self, lines: usize) -> String {
        crate::log::tail(&self.program.log, lines, "")
    }
}
