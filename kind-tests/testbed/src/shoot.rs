//! A shoot: its nodes and its own API server, and its control plane in a namespace of a seed.

mod assertions;
mod changes;
mod nodes;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};

pub use crate::gardener::{CA, KCM, MCM};
pub use nodes::{LEASES, Nodes, renew_time, renew_times};

use crate::bed::Testbed;
use crate::control_plane::ControlPlane;
use crate::gardener::{self, MACHINES, PROBE, shoot_access};
use crate::seed::SeedCluster;

/// What a shoot is made with.
#[derive(Clone, Debug)]
pub struct ShootPlan {
    /// How many nodes it has.
    pub nodes: usize,
    /// The shoot's nodeMonitorGracePeriod. The kubelets renew four times in it, as they do
    /// everywhere.
    pub grace: Duration,
    /// Deployments and their replicas.
    pub deployments: Vec<(&'static str, i64)>,
    /// What its nodes' names begin with; shoots that share an API server differ in it.
    pub node_prefix: String,
    /// Whether the prober's Secret is there from the beginning.
    pub secret: bool,
}

impl Default for ShootPlan {
    fn default() -> Self {
        Self {
            nodes: 3,
            // Long enough for a test machine that does much at once, short enough for a test suite.
            grace: Duration::from_secs(6),
            deployments: vec![(KCM, 2), (MCM, 1), (CA, 1)],
            node_prefix: "node".into(),
            secret: true,
        }
    }
}

/// A shoot of a scenario.
pub struct ShootCluster {
    /// The seed with its control plane.
    pub seed: Arc<SeedCluster>,
    /// Its namespace on the seed, which is the name of its Cluster too.
    pub namespace: String,
    /// Its own control plane.
    pub plane: ControlPlane,
    /// Its nodes.
    pub nodes: Nodes,
}

impl ShootCluster {
    /// Makes a shoot on a seed. `name` is the scenario's own.
    pub async fn create(
        bed: &Testbed,
        seed: &Arc<SeedCluster>,
        name: &str,
        plan: ShootPlan,
    ) -> Result<Self> {
        let plane = bed.start_control_plane("shoot").await?;
        Self::create_at(plane, seed, name, plan).await
    }

    /// Makes a shoot on a control plane that others may share; each has nodes of its own by its
    /// Machines.
    pub async fn create_at(
        plane: ControlPlane,
        seed: &Arc<SeedCluster>,
        name: &str,
        plan: ShootPlan,
    ) -> Result<Self> {
        plane.api().create_all(&shoot_access()).await?;
        let beat = (plan.grace / 4).min(Duration::from_secs(10));
        let mut nodes = Nodes::none(plane.api().clone(), &plan.node_prefix, plan.grace, beat);
        for index in 0..plan.nodes {
            let phase = beat.mul_f64(index as f64 / plan.nodes as f64);
            nodes.join(phase).await?;
        }
        let shoot = Self {
            seed: seed.clone(),
            namespace: format!("shoot--bed--{name}"),
            plane,
            nodes,
        };
        let (seed, namespace) = (seed.api(), shoot.namespace.as_str());
        seed.create(&gardener::namespace(namespace)).await?;
        for (name, replicas) in plan.deployments {
            shoot
                .create_workload("apps/v1", "Deployment", name, replicas)
                .await?;
        }
        for node in shoot.nodes.names() {
            shoot.add_machine(node).await?;
        }
        if plan.secret {
            let token = shoot.plane.api().token("kube-system", PROBE).await?;
            let kubeconfig = shoot.plane.kubeconfig(&token);
            let secret = gardener::probe_secret(namespace, &kubeconfig);
            seed.create(&secret).await?;
        }
        let grace = format!("{}ms", plan.grace.as_millis());
        let cluster = gardener::old_cluster(namespace, &grace);
        seed.create(&cluster).await?;
        Ok(shoot)
    }

    fn deployments(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/deployments", self.namespace)
    }

    fn machines(&self) -> String {
        format!("{MACHINES}/namespaces/{}/machines", self.namespace)
    }

    /// Fails if anything was forbidden to the prober.
    pub fn nothing_was_forbidden(&self) -> Result<()> {
        let mut forbidden = [self.asked_of_seed(), self.asked()].concat();
        forbidden.retain(|asked| asked.code == 403);
        ensure!(forbidden.is_empty(), "forbidden: {forbidden:#?}");
        Ok(())
    }
}
