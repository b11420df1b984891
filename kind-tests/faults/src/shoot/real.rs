//! The shoot whose control plane is real: kube-apiserver behind a relay, and
//! kube-controller-manager, which runs while its Deployment has replicas and gives nodes up.

use std::collections::BTreeSet;

use anyhow::Result;
use parking_lot::Mutex;
use serde_json::json;
use testbed::Bed;
use testbed::control_plane::ControllerManager;
use testbed::gardener::shoot_access;
use testbed::relay::Relay;
use testbed::seed::ControlPlane;

use super::{ShootApi, SoakShoot};
use crate::oracle::ledger::Violations;
use crate::pace::GRACE;

/// A real control plane.
pub struct Real {
    pub plane: ControlPlane,
    pub relay: Relay,
    manager: Mutex<ControllerManager>,
}

impl Real {
    /// Starts one, without kube-controller-manager.
    pub async fn start(bed: &Bed) -> Result<Self> {
        let plane = bed.start_control_plane("soak").await?;
        plane.api().create_all(&shoot_access()).await?;
        let relay = Relay::start(plane.address()).await?;
        let manager =
            ControllerManager::new(&bed.programs().await?, plane.admin_kubeconfig(), GRACE)?;
        Ok(Self {
            plane,
            relay,
            manager: Mutex::new(manager),
        })
    }

    /// The nodes that kube-controller-manager has given up and whose kubelets have not said
    /// otherwise.
    async fn given_up(&self) -> Result<Vec<String>> {
        let nodes = self.plane.api().get("/api/v1/nodes").await?;
        let unknown = |node: &&serde_json::Value| {
            let conditions = node["status"]["conditions"].as_array();
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|one| one["type"] == "Ready" && one["status"] == "Unknown")
            })
        };
        let nodes = nodes["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(unknown);
        Ok(nodes
            .map(|node| {
                node["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect())
    }
}

impl SoakShoot {
    /// Runs its kube-controller-manager, or ends it, if it has a real one.
    pub fn manage(&self, running: bool) {
        if let ShootApi::Real(real) = &*self.api
            && let Err(error) = real.manager.lock().set_running(running)
        {
            self.note(format!("kube-controller-manager: {error:#}"));
        }
    }

    /// Counts the nodes that a real kube-controller-manager gives up, and lets those be ready again
    /// that renew.
    pub async fn census(&self, lost: &mut BTreeSet<String>, ledger: &Violations) {
        let ShootApi::Real(real) = &*self.api else {
            return;
        };
        // It may not answer at this moment.
        for name in real.given_up().await.unwrap_or_default() {
            if lost.insert(name.clone()) {
                ledger.count("nodes that the real kube-controller-manager gave up");
                self.note(format!("kube-controller-manager gives {name} up"));
            }
            let cut = self.record().nodes.get(&name).is_none_or(|node| node.cut);
            let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
            if !cut && self.api.patch("nodes", &name, &ready).await.is_ok() {
                lost.remove(&name);
            }
        }
    }
}
