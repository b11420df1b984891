//! machine-controller-manager, real but for its provider: VMs are files in a folder
//! ([`crate::cloud`]).

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use testbed::control_plane::reserve_port;
use testbed::objects::object;
use testbed::process::{Program, words};
use testbed::{go_programs, reaper};

/// A Machine whose node has been unhealthy for so long is replaced. Over when
/// machine-controller-manager looks at it for the second time: 5 s after the first, sometimes a
/// minute.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

fn programs() -> Result<PathBuf> {
    go_programs::built("machine-controller-manager")
}

/// The resource definitions of this version of machine-controller-manager.
pub fn machine_definitions() -> Result<Vec<Value>> {
    let files = std::fs::read_dir(programs()?.join("crds"))?;
    files
        .map(|file| Ok(object(&std::fs::read_to_string(file?.path())?)))
        .collect()
}

/// machine-controller-manager for the Machines in `namespace` of the cluster `seed`, whose nodes
/// join the cluster `shoot` (kubeconfigs).
pub fn machine_controller_manager(
    seed: &str,
    shoot: &str,
    namespace: &str,
    vms: &Path,
) -> Result<Vec<Program>> {
    let (programs, folder) = (programs()?, reaper::folder("machine-controller-manager")?);
    std::fs::write(folder.join("seed"), seed)?;
    std::fs::write(folder.join("shoot"), shoot)?;
    let args = format!(
        "--control-kubeconfig={0}/seed --target-kubeconfig={0}/shoot --namespace={namespace} \
         --address=127.0.0.1 --leader-elect=false --v=3",
        folder.display()
    );
    // The provider of this part knows the VMs.
    let (vms, timeout) = (vms.display(), HEALTH_TIMEOUT.as_secs());
    let machine_args = format!("{args} --vms={vms} --machine-health-timeout={timeout}s");
    let part = |name: &str, args: &str| {
        let port = reserve_port(0)?.local_addr()?.port();
        let args = words(&format!("{args} --port={port}"));
        let log = folder.join(format!("{name}.log"));
        anyhow::Ok(Program::new(name, &programs.join(name), args, &log))
    };
    // Gardener runs both in one pod: one for MachineDeployments and MachineSets, one for Machines.
    Ok(vec![
        part("machine-controller-manager", &args)?,
        part("machine-controller", &machine_args)?,
    ])
}
