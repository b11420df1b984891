//! What a scenario does to a shoot: its nodes, and its resources on the seed.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::ShootCluster;
use crate::gardener;
use crate::objects::path;
use crate::seed::ReplicaState;
use crate::wait::eventually;

impl ShootCluster {
    /// Creates a resource with replicas and waits until they are ready.
    pub async fn create_workload(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        replicas: i64,
    ) -> Result<()> {
        let mut object = gardener::deployment(&self.namespace, name, replicas);
        (object["apiVersion"], object["kind"]) = (api_version.into(), kind.into());
        if kind == "StatefulSet" {
            object["spec"]["serviceName"] = name.into();
        }
        let (api, path) = (self.seed.api(), path(&object)?);
        api.create(&object).await?;
        eventually("the pods of a new resource are ready", async || {
            let state = ReplicaState::of(&api.get(&path).await?);
            ensure!(state.ready == replicas, "{name}: {state:?}");
            Ok(())
        })
        .await
    }

    /// Creates the Machine of a node.
    pub(super) async fn add_machine(&self, node: &str) -> Result<()> {
        let machine = gardener::machine(&self.namespace, node);
        let (api, path) = (self.seed.api(), path(&machine)?);
        api.create(&machine).await?;
        api.merge(&format!("{path}/status"), &machine).await
    }

    /// Lets nodes leave or join, with their Machines, until there are `count`. Who joins renews
    /// first after a phase of its own.
    pub async fn set_nodes(
        &mut self,
        count: usize,
        mut phase: impl FnMut() -> Duration,
    ) -> Result<()> {
        while self.nodes.names().len() > count {
            let machine = format!("{}/{}", self.machines(), self.nodes.leave().await?);
            self.seed.api().delete(&machine).await?;
        }
        while self.nodes.names().len() < count {
            let name = self.nodes.join(phase()).await?;
            self.add_machine(&name).await?;
        }
        Ok(())
    }

    /// Sets or removes an annotation of a Deployment.
    pub async fn annotate(&self, name: &str, key: &str, value: Option<&str>) -> Result<()> {
        let deployment = format!("{}/{name}", self.deployments());
        self.seed.api().annotate(&deployment, key, value).await
    }
}
