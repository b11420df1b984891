//! machine-controller-manager, real but for its provider: VMs are files in a folder
//! ([`crate::cloud`]).

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::control_plane::{ControllerManager, free_ports};
use testbed::process::Program;
use testbed::{go_programs, reaper};

fn programs() -> Result<PathBuf> {
    go_programs::built("machine-controller-manager")
}

/// The resource definitions of this version of machine-controller-manager.
pub fn machine_definitions() -> Result<Vec<Value>> {
    let mut definitions = Vec::new();
    for file in std::fs::read_dir(programs()?.join("crds"))? {
        let path = file?.path();
        let definition = serde_saphyr::from_str(&std::fs::read_to_string(&path)?);
        definitions.push(definition.with_context(|| path.display().to_string())?);
    }
    Ok(definitions)
}

/// Prepares machine-controller-manager for the Machines in `namespace` of the cluster `seed`, whose
/// nodes join the cluster `shoot` (kubeconfigs). A Machine whose node has been unhealthy for longer
/// than `health_timeout` is replaced.
pub fn machine_controller_manager(
    seed: &str,
    shoot: &str,
    namespace: &str,
    vms: &Path,
    health_timeout: Duration,
) -> Result<ControllerManager> {
    let (programs, folder) = (programs()?, reaper::folder("machine-controller-manager")?);
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
    let machine_args = [
        format!("--vms={}", vms.display()),
        format!("--machine-health-timeout={}s", health_timeout.as_secs()),
    ];
    let ports: [u16; 2] = free_ports()?;
    let part = |name: &str, port: u16, more: &[String]| Program {
        name: name.to_owned(),
        path: programs.join(name),
        args: [&args, more, &[format!("--port={port}")]].concat(),
        environment: Vec::new(),
        log: folder.join(format!("{name}.log")),
    };
    // Gardener runs both in one pod: one for MachineDeployments and MachineSets, one for Machines.
    let parts = vec![
        part("machine-controller-manager", ports[0], &[]),
        part("machine-controller", ports[1], &machine_args),
    ];
    ControllerManager::of(parts, &ports)
}
