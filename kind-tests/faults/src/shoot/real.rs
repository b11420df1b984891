//! The shoot whose control plane is real: kube-apiserver behind a proxy, and
//! kube-controller-manager, which runs while its Deployment has replicas and marks nodes Unknown.

use std::collections::BTreeSet;

use anyhow::Result;
use parking_lot::Mutex;
use serde_json::{Value, json};
use testbed::Testbed;
use testbed::control_plane::ControllerManager;
use testbed::gardener::shoot_access;
use testbed::objects::{items, name};
use testbed::proxy::TcpProxy;
use testbed::seed::ControlPlane;

use super::{NODES, ShootApi, SoakShoot};
use crate::oracle::violations::Violations;
use crate::pace::GRACE;

/// A real control plane.
pub struct Real {
    pub plane: ControlPlane,
    pub proxy: TcpProxy,
    manager: Mutex<ControllerManager>,
}

impl Real {
    /// Starts one, without kube-controller-manager.
    pub async fn start(bed: &Testbed) -> Result<Self> {
        let plane = bed.start_control_plane("soak").await?;
        plane.api().create_all(&shoot_access()).await?;
        let proxy = TcpProxy::start(plane.address()).await?;
        let manager =
            ControllerManager::new(&bed.programs().await?, plane.admin_kubeconfig(), GRACE)?;
        Ok(Self {
            plane,
            proxy,
            manager: Mutex::new(manager),
        })
    }

    /// The nodes that kube-controller-manager has marked Unknown and whose kubelets have not said
    /// otherwise.
    async fn unknown_nodes(&self) -> Result<Vec<String>> {
        let nodes = self.plane.api().list(NODES.collection).await?;
        let is_unknown = |one: &Value| one["type"] == "Ready" && one["status"] == "Unknown";
        let unknown = nodes
            .iter()
            .filter(|node| items(&node["status"]["conditions"]).any(is_unknown));
        Ok(unknown.map(|node| name(node).to_owned()).collect())
    }
}

impl SoakShoot {
    /// Runs its kube-controller-manager, or ends it, if it has a real one.
    pub fn run_controllers(&self, running: bool) {
        if let ShootApi::Real(real) = &*self.api
            && let Err(error) = real.manager.lock().set_running(running)
        {
            self.note(format!("kube-controller-manager: {error:#}"));
        }
    }

    /// Counts the nodes that a real kube-controller-manager marks Unknown, and lets those be ready
    /// again that renew.
    pub async fn check_nodes(&self, lost: &mut BTreeSet<String>, violations: &Violations) {
        let ShootApi::Real(real) = &*self.api else {
            return;
        };
        // It may not answer at this moment.
        for name in real.unknown_nodes().await.unwrap_or_default() {
            if lost.insert(name.clone()) {
                violations.count("nodes that the real kube-controller-manager gave up");
                self.note(format!("kube-controller-manager marks {name} Unknown"));
            }
            let cut = self.record().nodes.get(&name).is_none_or(|node| node.cut);
            let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
            if !cut && self.api.patch(NODES, &name, &ready).await.is_ok() {
                lost.remove(&name);
            }
        }
    }
}
