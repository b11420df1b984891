//! The shoot whose control plane is real: kube-apiserver behind a relay, and kube-controller-manager, which runs while its
//! Deployment has replicas and gives nodes up.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use serde_json::{Value, json};
use testbed::Bed;
use testbed::control_plane::ControllerManager;
use testbed::manifests::{PROBE, shoot_access};
use testbed::relay::Relay;
use testbed::seed::{ControlPlane, apply};

use crate::pace::GRACE;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A real control plane.
pub struct Real {
    plane: ControlPlane,
    pub relay: Relay,
    manager: Mutex<ControllerManager>,
}

impl Real {
    /// Starts one, without kube-controller-manager.
    pub async fn start(bed: &Bed) -> Result<Self> {
        let plane = bed.start_control_plane("soak").await?;
        apply(plane.api(), shoot_access()).await?;
        let relay = Relay::start(plane.address()).await?;
        let manager = ControllerManager::new(&bed.programs().await?, plane.admin_kubeconfig(), GRACE)?;
        Ok(Self { plane, relay, manager: Mutex::new(manager) })
    }

    /// A kubeconfig that leads through the relay.
    pub fn kubeconfig(&self, token: &str) -> String {
        self.plane.kubeconfig(&format!("https://{}", self.relay.address()), token)
    }

    /// A token for the prober, beside those that there are.
    pub async fn token(&self) -> Result<String> {
        self.plane.api().token("kube-system", PROBE).await
    }

    /// Makes all tokens worthless that there are.
    pub async fn revoke(&self) -> Result<()> {
        self.plane.api().delete(&format!("/api/v1/namespaces/kube-system/serviceaccounts/{PROBE}")).await?;
        apply(self.plane.api(), shoot_access()).await
    }

    pub async fn add_node(&self, node: &Value, lease: &Value) -> Result<()> {
        self.plane.api().create("/api/v1/nodes", node).await?;
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        self.patch_node(name, &json!({"status": node["status"]})).await?;
        self.plane.api().create(LEASES, lease).await
    }

    pub async fn remove_node(&self, name: &str) -> Result<()> {
        self.plane.api().delete(&format!("/api/v1/nodes/{name}")).await?;
        self.plane.api().delete(&format!("{LEASES}/{name}")).await
    }

    /// Changes a node; its status by a path of its own.
    pub async fn patch_node(&self, name: &str, patch: &Value) -> Result<()> {
        let path = format!("/api/v1/nodes/{name}");
        if patch["status"].is_null() {
            self.plane.api().merge(&path, patch).await?;
        } else {
            self.plane.api().merge(&format!("{path}/status"), &json!({"status": patch["status"]})).await?;
        }
        Ok(())
    }

    pub async fn renew(&self, name: &str, stamp: &str) -> Result<()> {
        self.plane.api().merge(&format!("{LEASES}/{name}"), &json!({"spec": {"renewTime": stamp}})).await?;
        Ok(())
    }

    /// Runs kube-controller-manager, or ends it.
    pub fn manage(&self, running: bool) -> Result<()> {
        self.manager.lock().unwrap_or_else(PoisonError::into_inner).set_running(running)
    }

    /// The nodes that kube-controller-manager has given up and whose kubelets have not said otherwise.
    pub async fn given_up(&self) -> Result<Vec<String>> {
        let nodes = self.plane.api().get("/api/v1/nodes").await?;
        let unknown = |node: &&Value| {
            let conditions = node["status"]["conditions"].as_array();
            let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
            ready.is_some_and(|ready| ready["status"] == "Unknown")
        };
        let nodes = nodes["items"].as_array().into_iter().flatten().filter(unknown);
        Ok(nodes.map(|node| node["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect())
    }
}
