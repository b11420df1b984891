//! A shoot: its nodes and its own API server behind a proxy, and its control plane in a namespace
//! of a seed.

mod assertions;
mod changes;
mod cluster;
mod nodes;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;

pub use crate::gardener::{CA, KCM, MCM};
pub use cluster::Body;
pub use nodes::{LEASES, Nodes, renew_time, renew_times};

use crate::audit::Mark;
use crate::bed::Testbed;
use crate::control_plane::ControlPlane;
use crate::gardener::{self, MACHINES, shoot_access};
use crate::loan::Loan;
use crate::proxy::TcpProxy;
use crate::seed::SeedCluster;
use crate::stalls::unique;

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
    /// The Shoot inside the Cluster resource.
    pub body: Body,
    /// What its nodes' names begin with; shoots that share an API server differ in it.
    pub node_prefix: String,
    /// Whether the prober's Secret is there from the beginning.
    pub secret: bool,
    /// Whether a 403 is part of the story.
    pub forbidden: bool,
}

impl Default for ShootPlan {
    fn default() -> Self {
        Self {
            nodes: 3,
            // Long enough for a test machine that does much at once, short enough for a test suite.
            grace: Duration::from_secs(6),
            deployments: vec![(KCM, 2), (MCM, 1), (CA, 1)],
            body: Body::default(),
            node_prefix: "node".into(),
            secret: true,
            forbidden: false,
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
    /// What the prober's requests pass.
    pub proxy: TcpProxy,
    /// Its nodes.
    pub nodes: Nodes,
    body: Body,
    grace: Duration,
    forbidden: bool,
    mark: Mark,
    seed_mark: Mark,
    /// The last to be dropped, see [`SeedCluster`].
    _loan: Option<Loan>,
}

impl ShootCluster {
    /// Makes a shoot on a seed. `name` is the scenario's own.
    pub async fn create(
        bed: &'static Testbed,
        seed: &Arc<SeedCluster>,
        name: &str,
        plan: ShootPlan,
    ) -> Result<Self> {
        let (plane, loan) = bed.lend_shoot().await?;
        let mut shoot = Self::create_at(plane, seed, name, plan).await?;
        shoot._loan = Some(loan);
        Ok(shoot)
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
        let proxy = TcpProxy::start(plane.address()).await?;
        let beat = (plan.grace / 4).min(Duration::from_secs(10));
        let mut nodes = Nodes::none(plane.api().clone(), &plan.node_prefix, plan.grace, beat);
        for index in 0..plan.nodes {
            let phase = beat.mul_f64(index as f64 / plan.nodes as f64);
            nodes.join(phase).await?;
        }
        let shoot = Self {
            seed: seed.clone(),
            namespace: format!("shoot--bed--{}", unique(name)),
            mark: plane.mark(),
            seed_mark: seed.plane().mark(),
            plane,
            proxy,
            nodes,
            body: plan.body,
            grace: plan.grace,
            forbidden: plan.forbidden,
            _loan: None,
        };
        let seed = seed.api();
        seed.create(&gardener::namespace(&shoot.namespace)).await?;
        for (name, replicas) in plan.deployments {
            shoot
                .create_workload("apps/v1", "Deployment", name, replicas)
                .await?;
        }
        for name in shoot.nodes.names() {
            shoot.add_machine(name, name).await?;
        }
        if plan.secret {
            shoot.renew_secret().await?;
        }
        shoot.publish().await?;
        Ok(shoot)
    }

    fn deployments(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/deployments", self.namespace)
    }

    fn machines(&self) -> String {
        format!("{MACHINES}/namespaces/{}/machines", self.namespace)
    }

    fn secrets(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    /// Ends the scenario: nothing was forbidden, and the next one finds a clean seed.
    pub async fn end(self) -> Result<()> {
        self.delete_cluster().await?;
        if !self.forbidden {
            let asked = [self.asked_of_seed(), self.asked()].concat();
            let forbidden: Vec<_> = asked.iter().filter(|asked| asked.code == 403).collect();
            ensure!(forbidden.is_empty(), "forbidden: {forbidden:#?}");
        }
        self.seed.search_events().await?;
        let api = self.seed.api();
        let collections = [self.deployments(), self.machines(), self.secrets()];
        try_join_all(collections.iter().map(|path| api.delete(path))).await?;
        // No renewal may land on what the next scenario creates under the same names.
        self.nodes.cut_all();
        self.nodes.settled().await;
        Ok(())
    }
}
