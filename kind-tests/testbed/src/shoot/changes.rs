//! What a scenario does to a shoot: its resources on the seed, its Secret, its Cluster.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Body, ShootCluster};
use crate::gardener::{self, CLUSTERS, PROBE, shoot_access};
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
            ensure!(state.ready == replicas, "{name}: {state}");
            Ok(())
        })
        .await
    }

    /// Creates a Machine for a node.
    pub async fn add_machine(&self, name: &str, node: &str) -> Result<()> {
        let mut machine = gardener::machine(&self.namespace, node);
        machine["metadata"]["name"] = name.into();
        self.seed.api().create(&machine).await?;
        self.set_machine_phase(name, "Running").await
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
            self.add_machine(&name, &name).await?;
        }
        Ok(())
    }

    /// Sets a Machine's phase.
    pub async fn set_machine_phase(&self, machine: &str, phase: &str) -> Result<()> {
        let path = format!("{}/{machine}/status", self.machines());
        let status = json!({"status": {"currentStatus": {"phase": phase}}});
        self.seed.api().merge(&path, &status).await
    }

    /// Writes the Secret with a new token, as Gardener's token requestor does several times a day.
    pub async fn renew_secret(&self) -> Result<()> {
        let token = self.plane.api().token("kube-system", PROBE).await?;
        self.write_secret(&self.kubeconfig(self.proxy.address(), &token))
            .await
    }

    /// A kubeconfig for this shoot.
    pub fn kubeconfig(&self, address: SocketAddr, token: &str) -> String {
        self.plane.kubeconfig(&format!("https://{address}"), token)
    }

    /// Makes every token of the prober in this shoot worthless. It takes the API server up to 10 s
    /// to forget what it has already accepted.
    pub async fn revoke_tokens(&self) -> Result<()> {
        let api = self.plane.api();
        let account = format!("/api/v1/namespaces/kube-system/serviceaccounts/{PROBE}");
        api.delete(&account).await?;
        api.create_all(&shoot_access()).await
    }

    /// Writes the Secret.
    pub async fn write_secret(&self, kubeconfig: &str) -> Result<()> {
        let (api, secret) = (
            self.seed.api(),
            gardener::probe_secret(&self.namespace, kubeconfig),
        );
        api.create(&secret).await?;
        api.replace(&path(&secret)?, "/data", &secret["data"]).await
    }

    /// Creates a Secret with a kubeconfig under a name of its own.
    pub async fn write_secret_named(&self, name: &str, kubeconfig: &str) -> Result<()> {
        let mut secret = gardener::probe_secret(&self.namespace, kubeconfig);
        secret["metadata"]["name"] = name.into();
        self.seed.api().create(&secret).await
    }

    /// Changes the Shoot inside the Cluster resource.
    pub async fn change(&mut self, change: impl FnOnce(&mut Body)) -> Result<()> {
        change(&mut self.body);
        self.publish().await
    }

    /// Writes the Cluster.
    pub(super) async fn publish(&self) -> Result<()> {
        let cluster = self.body.cluster(&self.namespace, self.grace);
        let api = self.seed.api();
        api.create(&cluster).await?;
        api.replace(&path(&cluster)?, "/spec/shoot", &cluster["spec"]["shoot"])
            .await
    }

    /// Deletes the Cluster.
    pub async fn delete_cluster(&self) -> Result<()> {
        let cluster = format!("{CLUSTERS}/{}", self.namespace);
        self.seed.api().delete(&cluster).await
    }

    /// Scales a Deployment by hand.
    pub async fn scale(&self, name: &str, replicas: i64) -> Result<()> {
        let deployment = format!("{}/{name}", self.deployments());
        let patch = json!({"spec": {"replicas": replicas}});
        self.seed.api().merge(&deployment, &patch).await
    }

    /// Sets or removes an annotation of a Deployment.
    pub async fn annotate(&self, name: &str, key: &str, value: Option<&str>) -> Result<()> {
        let deployment = format!("{}/{name}", self.deployments());
        self.seed.api().annotate(&deployment, key, value).await
    }
}
