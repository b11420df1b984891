//! machine-controller-manager, real but for its provider: VMs are files in a folder ([`crate::Cloud`]).

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::free_ports;
use crate::gardener::Manifest;
use crate::process::{Process, Program};
use crate::{go_programs, leash};

async fn programs() -> Result<PathBuf> {
    go_programs::built("machine-controller-manager").await
}

/// The resource definitions of this version of machine-controller-manager.
pub async fn machine_definitions() -> Result<Vec<Manifest>> {
    let mut definitions = Vec::new();
    for file in std::fs::read_dir(programs().await?.join("crds"))? {
        let path = file?.path();
        let definition = serde_saphyr::from_str(&std::fs::read_to_string(&path)?);
        let definition = definition.with_context(|| path.display().to_string())?;
        definitions.push(("/apis/apiextensions.k8s.io/v1/customresourcedefinitions".into(), definition));
    }
    Ok(definitions)
}

/// A machine-controller-manager that can be stopped and started like the Deployment it stands for.
pub struct MachineControllerManager {
    /// Gardener runs both in one pod: one for MachineDeployments and MachineSets, one for Machines.
    parts: [Program; 2],
    processes: Vec<Process>,
}

impl MachineControllerManager {
    /// Prepares one for the Machines in `namespace` of the cluster `seed`, whose nodes join the cluster `shoot` (kubeconfigs). A Machine
    /// whose node has been unhealthy for longer than `health_timeout` is replaced.
    pub async fn new(seed: &str, shoot: &str, namespace: &str, vms: &Path, health_timeout: Duration) -> Result<Self> {
        let (programs, folder) = (programs().await?, leash::folder("machine-controller-manager")?);
        let file = |name: &str, text: &str| -> Result<String> {
            let path = folder.join(name);
            std::fs::write(&path, text)?;
            Ok(path.display().to_string())
        };
        let args = [
            format!("--control-kubeconfig={}", file("seed", seed)?),
            format!("--target-kubeconfig={}", file("shoot", shoot)?),
            format!("--namespace={namespace}"),
            "--address=127.0.0.1".into(),
            "--leader-elect=false".into(),
            "--v=3".into(),
        ];
        // The provider of this part knows the VMs.
        let machine_args =
            [format!("--vms={}", vms.display()), format!("--machine-health-timeout={}s", health_timeout.as_secs())];
        let part = |name: &str, more: &[String]| Program {
            name: name.to_owned(),
            path: programs.join(name),
            args: [&args, more].concat(),
            environment: Vec::new(),
            log: folder.join(format!("{name}.log")),
        };
        let parts = [part("machine-controller-manager", &[]), part("machine-controller", &machine_args)];
        Ok(Self { parts, processes: Vec::new() })
    }

    /// Runs it, or ends it. A part that has ended by itself is started again.
    pub fn set_running(&mut self, running: bool) -> Result<()> {
        if running == self.is_running() {
            return Ok(());
        }
        self.processes.clear();
        if running {
            let ports: [u16; 2] = free_ports()?;
            for (part, port) in self.parts.iter().zip(ports) {
                let mut part = part.clone();
                part.args.push(format!("--port={port}"));
                self.processes.push(part.start()?);
            }
        }
        Ok(())
    }

    /// Whether it runs.
    pub fn is_running(&mut self) -> bool {
        !self.processes.is_empty() && self.processes.iter_mut().all(|process| matches!(process.ended(), Ok(None)))
    }

    /// The last lines that its parts have said.
    pub fn tail(&self, lines: usize) -> String {
        self.parts.each_ref().map(|part| format!("{}:\n{}", part.name, crate::log::tail(&part.log, lines, ""))).join("\n")
    }
}
