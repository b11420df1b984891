//! A shoot whose machines are replaced by those who do it in production.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use testbed::agent::RunningAgent;
use testbed::gardener::MACHINES;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{
    DeploymentPod, ProberConfig, SeedCluster, ShootCluster, ShootPlan, Testbed, WebService,
    eventually, kube_controller_manager, start_prober,
};

use crate::cloud::{Cloud, POOL};
use crate::journal::{MachineJournal, RUNNING};
use crate::machine_controller_manager::{machine_controller_manager, machine_definitions};

/// Half of the grace in Gardener, where a kubelet renews every 10 s: here every 5 s.
const GRACE: Duration = Duration::from_secs(20);
/// Machines of a shoot.
pub const COUNT: usize = 3;
/// The usual three, and their replicas.
pub const USUAL: [(&str, i64); 3] = [(KCM, 1), (MCM, 1), (CA, 1)];

/// A seed whose Machines are machine-controller-manager's own, and its prober.
pub async fn seed(bed: &Testbed) -> Result<(Arc<SeedCluster>, RunningAgent)> {
    let plane = bed.start_control_plane("seed").await?;
    // Before the testbed's own definition of Machines, which then finds its place taken.
    plane.api().create_all(&machine_definitions()?).await?;
    let seed = SeedCluster::prepare(plane).await?;
    // Definitions that have just been created are served a moment later.
    for plural in ["machineclasses", "machinesets", "machinedeployments"] {
        seed.api().appears(&format!("{MACHINES}/{plural}")).await?;
    }
    let config = ProberConfig {
        interval: "15s",
        initial_delay: "15s",
        machine_delay: "15s",
        ..ProberConfig::default()
    };
    let prober = start_prober(&seed, config).await?;
    Ok((Arc::new(seed), prober))
}

/// A shoot with machines.
pub struct MachineWorld {
    pub shoot: ShootCluster,
    pub cloud: Cloud,
    pub machines: MachineJournal,
    pub kube_controller_manager: DeploymentPod,
    pub machine_controller_manager: DeploymentPod,
}

impl MachineWorld {
    /// Makes a shoot and waits until its machines run.
    pub async fn create(bed: &Testbed, seed: &Arc<SeedCluster>, name: &str) -> Result<Self> {
        let plan = ShootPlan {
            nodes: 0,
            grace: GRACE,
            deployments: USUAL.into(),
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, seed, name, plan).await?;
        let cloud = Cloud::start(shoot.plane.api().clone(), GRACE)?;
        let namespace = &shoot.namespace;
        seed.api().create_yaml(&pool(namespace)).await?;
        let (admin, own) = (
            seed.plane().admin_kubeconfig(),
            shoot.plane.admin_kubeconfig(),
        );
        let kcm = kube_controller_manager(&bed.programs().await?, own, GRACE)?;
        let mcm = machine_controller_manager(admin, own, namespace, cloud.folder())?;
        let machines = format!("{MACHINES}/namespaces/{namespace}/machines");
        let world = Self {
            machines: MachineJournal::start(seed.api(), machines),
            kube_controller_manager: DeploymentPod::start(&shoot, KCM, vec![kcm]),
            machine_controller_manager: DeploymentPod::start(&shoot, MCM, mcm),
            shoot,
            cloud,
        };
        let all_run = async || world.all_run();
        world.eventually("all machines run", all_run).await?;
        world.shoot.after_probes(1).await?;
        Ok(world)
    }

    /// Whether all Machines are there, and healthy.
    pub fn all_run(&self) -> Result<()> {
        let phases = self.machines.phases();
        let all_run = phases.len() == COUNT && phases.values().all(|phase| phase == RUNNING);
        ensure!(all_run, "{phases:?}");
        Ok(())
    }

    /// A Service with a ready endpoint on each node that there is now.
    pub async fn service(&self) -> Result<WebService> {
        let api = self.shoot.plane.api();
        let mut service = WebService::create(api).await?;
        service.run_on(&api.names("/api/v1/nodes").await?).await?;
        Ok(service)
    }

    /// The Machines of this shoot, by name.
    pub fn names(&self) -> BTreeSet<String> {
        self.machines.phases().into_keys().collect()
    }

    /// Waits for something, with what happened when it fails.
    pub async fn eventually(
        &self,
        what: &str,
        check: impl AsyncFnMut() -> Result<()>,
    ) -> Result<()> {
        eventually(what, check).await.with_context(|| self.story())
    }

    /// What happened, for a person who reads why a scenario failed.
    pub fn story(&self) -> String {
        let (story, steps) = (self.shoot.story(), self.machines.steps());
        format!("{story}\nmachines: {steps:#?}")
    }
}

/// What Gardener orders for a worker pool. machine-controller-manager counts the replacements of a
/// MachineDeployment by the label "name".
fn pool(namespace: &str) -> String {
    let user_data = STANDARD.encode("no VM reads it");
    format!(
        "
apiVersion: v1
kind: Secret
metadata: {{name: {POOL}, namespace: {namespace}}}
data: {{userData: {user_data}}}
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: {{name: {POOL}, namespace: {namespace}}}
provider: local
providerSpec: {{}}
secretRef: {{name: {POOL}, namespace: {namespace}}}
---
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {{name: {POOL}, namespace: {namespace}}}
spec:
  replicas: {COUNT}
  selector: {{matchLabels: {{name: {POOL}}}}}
  strategy: {{type: RollingUpdate, rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}}}
  template:
    metadata: {{labels: {{name: {POOL}}}}}
    spec:
      class: {{kind: MachineClass, name: {POOL}}}
      nodeTemplate: {{metadata: {{labels: {{worker.gardener.cloud/pool: {POOL}}}}}}}
"
    )
}
