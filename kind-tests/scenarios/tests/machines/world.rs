//! A shoot whose machines are replaced by those who do it in production.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testbed::control_plane::ControllerManager;
use testbed::gardener::MACHINES;
use testbed::shoot::{CA, KCM, MCM};
use testbed::{
    DeploymentPod, Prober, ProberConfig, SeedCluster, ShootCluster, ShootPlan, Testbed, WebService,
    eventually,
};
use tokio::sync::OnceCell;

use crate::cloud::{Cloud, POOL};
use crate::journal::{MachineJournal, MachineStep, RUNNING};
use crate::machine_controller_manager::{machine_controller_manager, machine_definitions};

/// Half of the grace in Gardener, where a kubelet renews every 10 s: here every 5 s.
const GRACE: Duration = Duration::from_secs(20);
/// The three Deployments when they are held down.
pub const DOWN: [(&str, &str); 3] = [(KCM, "1"), (MCM, "1"), (CA, "1")];
/// And at other times.
pub const UP: [(&str, i64); 3] = [(KCM, 1), (MCM, 1), (CA, 1)];

static SEED: OnceCell<Arc<SeedCluster>> = OnceCell::const_new();

/// The seed of all scenarios here. Its Machines are machine-controller-manager's own, and it has a
/// prober.
async fn seed(bed: &'static Testbed) -> Result<Arc<SeedCluster>> {
    let prepare = async || {
        let plane = bed.start_control_plane("seed").await?;
        // Before the testbed's own definition of Machines, which then finds its place taken.
        plane.api().create_all(&machine_definitions()?).await?;
        let seed = SeedCluster::prepare(plane).await?;
        let config = ProberConfig {
            interval: "15s",
            initial_delay: "15s",
            machine_delay: "15s",
            ..ProberConfig::default()
        };
        seed.keep(Prober::start(&seed, config).await?);
        anyhow::Ok(Arc::new(seed))
    };
    SEED.get_or_try_init(prepare).await.cloned()
}

/// A shoot with machines.
pub struct MachineWorld {
    pub shoot: ShootCluster,
    pub cloud: Cloud,
    pub machines: MachineJournal,
    kube_controller_manager: DeploymentPod,
    machine_controller_manager: DeploymentPod,
}

impl MachineWorld {
    /// Makes a shoot and waits until `count` machines run.
    pub async fn create(
        bed: &'static Testbed,
        name: &str,
        count: usize,
        health_timeout: Duration,
    ) -> Result<Self> {
        let plan = ShootPlan {
            nodes: 0,
            grace: GRACE,
            deployments: UP.into(),
            ..ShootPlan::default()
        };
        let shoot = ShootCluster::create(bed, &seed(bed).await?, name, plan).await?;
        let cloud = Cloud::start(shoot.plane.api().clone(), GRACE)?;
        order(&shoot, count).await?;
        let (seed, plane) = (
            shoot.seed.plane().admin_kubeconfig(),
            shoot.plane.admin_kubeconfig(),
        );
        let kcm = ControllerManager::new(&bed.programs().await?, plane, GRACE)?;
        let mcm = machine_controller_manager(
            seed,
            plane,
            &shoot.namespace,
            cloud.folder(),
            health_timeout,
        )?;
        let world = Self {
            machines: MachineJournal::start(
                shoot.seed.api(),
                machines(&shoot.namespace, "machines"),
            ),
            kube_controller_manager: DeploymentPod::start(&shoot, KCM, kcm),
            machine_controller_manager: DeploymentPod::start(&shoot, MCM, mcm),
            shoot,
            cloud,
        };
        if let Err(error) = eventually("all machines run", async || world.all_run(count)).await {
            return Err(error.context(world.story().await));
        }
        world.shoot.after_probes(1).await?;
        Ok(world)
    }

    /// Whether there are so many Machines, all of them healthy.
    pub fn all_run(&self, count: usize) -> Result<()> {
        let phases = self.machines.phases();
        ensure!(
            phases.len() == count && phases.values().all(|phase| phase == RUNNING),
            "{phases:?}"
        );
        Ok(())
    }

    /// A Service with a ready endpoint on each node that there is now.
    pub async fn service(&self) -> Result<WebService> {
        let api = self.shoot.plane.api();
        WebService::over(api, &api.names("/api/v1/nodes").await?).await
    }

    /// The Machines of this shoot, by name.
    pub fn names(&self) -> BTreeSet<String> {
        self.machines.phases().into_keys().collect()
    }

    fn path(&self, machine: &str) -> String {
        format!("{}/{machine}", machines(&self.shoot.namespace, "machines"))
    }

    /// A Machine.
    pub async fn machine(&self, name: &str) -> Result<Value> {
        self.shoot.seed.api().get(&self.path(name)).await
    }

    /// Sets an annotation of a Machine.
    pub async fn annotate(&self, machine: &str, key: &str, value: &str) -> Result<()> {
        let (api, path) = (self.shoot.seed.api(), self.path(machine));
        api.annotate(&path, key, Some(value)).await
    }

    /// Whether kube-controller-manager and machine-controller-manager run.
    pub async fn controllers_run(&self) -> (bool, bool) {
        let kcm = self.kube_controller_manager.program().await.is_running();
        let mcm = self.machine_controller_manager.program().await.is_running();
        (kcm, mcm)
    }

    /// What happened, for a person who reads why a scenario failed.
    pub async fn story(&self) -> String {
        let steps = self.machines.steps();
        let begin = steps.first().map(|step| step.at);
        let line = |step: &MachineStep| {
            let seconds = begin
                .map(|begin| (step.at - begin).as_secs_f64())
                .unwrap_or_default();
            format!("  {seconds:7.2} s  {}: {}", step.machine, step.phase)
        };
        let steps: Vec<String> = steps.iter().map(line).collect();
        let mcm = self.machine_controller_manager.program().await.tail(12);
        format!(
            "{}\nmachines:\n{}\n{mcm}",
            self.shoot.story(),
            steps.join("\n")
        )
    }

    /// Ends the scenario.
    pub async fn end(self) -> Result<()> {
        drop((
            self.machines,
            self.kube_controller_manager,
            self.machine_controller_manager,
        ));
        self.cloud.end().await;
        self.shoot.end().await
    }
}

fn machines(namespace: &str, plural: &str) -> String {
    format!("{MACHINES}/namespaces/{namespace}/{plural}")
}

/// Orders machines, as Gardener does for a worker pool.
async fn order(shoot: &ShootCluster, count: usize) -> Result<()> {
    let (api, namespace) = (shoot.seed.api(), shoot.namespace.as_str());
    let metadata = json!({"name": POOL, "namespace": namespace});
    let user_data = STANDARD.encode("no VM reads it");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"userData": user_data}});
    api.create(&secret).await?;
    let class = json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineClass", "metadata": metadata,
        "provider": "local", "providerSpec": {}, "secretRef": metadata,
    });
    // Definitions that have just been created are served a moment later.
    for plural in ["machineclasses", "machinesets", "machinedeployments"] {
        eventually("machines are served", async || {
            api.get(&machines(namespace, plural)).await
        })
        .await?;
    }
    api.create(&class).await?;
    // machine-controller-manager counts the replacements of a MachineDeployment by the label
    // "name".
    let labels = json!({"name": POOL});
    let deployment = json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineDeployment", "metadata": metadata,
        "spec": {
            "replicas": count, "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": labels}, "spec": {
                "class": {"kind": "MachineClass", "name": POOL},
                "nodeTemplate": {"metadata": {"labels": {"worker.gardener.cloud/pool": POOL}}},
            }},
        },
    });
    api.create(&deployment).await
}
