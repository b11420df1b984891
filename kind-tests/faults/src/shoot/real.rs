//! The shoot whose control plane is real: kube-apiserver behind a relay, and kube-controller-manager, which runs while its
//! Deployment has replicas and gives nodes up.

use std::sync::Mutex;

use anyhow::Result;
use faults::lock;
use serde_json::{Value, json};
use testbed::Bed;
use testbed::control_plane::ControllerManager;
use testbed::gardener::{PROBE, shoot_access};
use testbed::relay::Relay;
use testbed::seed::{ControlPlane, apply};
use testbed::shoot;

use super::LEASES;
use crate::pace::GRACE;

fn collection(resource: &str) -> &'static str {
    if resource == LEASES { shoot::LEASES } else { "/api/v1/nodes" }
}

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

    pub async fn create(&self, resource: &str, object: &Value) -> Result<()> {
        self.plane.api().create(collection(resource), object).await?;
        // The status of a new object does not count.
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if object["status"].is_null() { Ok(()) } else { self.patch(resource, name, &json!({"status": object["status"]})).await }
    }

    pub async fn patch(&self, resource: &str, name: &str, patch: &Value) -> Result<()> {
        let subresource = if patch["status"].is_null() { "" } else { "/status" };
        self.plane.api().merge(&format!("{}/{name}{subresource}", collection(resource)), patch).await.map(drop)
    }

    pub async fn delete(&self, resource: &str, name: &str) -> Result<()> {
        self.plane.api().delete(&format!("{}/{name}", collection(resource))).await
    }

    /// Runs kube-controller-manager, or ends it.
    pub fn manage(&self, running: bool) -> Result<()> {
        lock(&self.manager).set_running(running)
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
