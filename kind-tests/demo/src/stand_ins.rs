//! Those who act in a real landscape and are not built here: the seed's kubelets and each shoot's kube-controller-manager.
//!
//! Both are stepped by the story, ten times a second; neither has a task of its own.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{self, GRACE, KCM, Part, World};

/// How long pods take to become ready or to be gone: between 1 and 2 s, as small pods on an idle node do.
const POD_TIME: Duration = Duration::from_millis(1500);

/// Lets ready replicas follow the wanted ones.
#[derive(Default)]
pub struct Kubelet {
    /// Since when a Deployment has wanted what it does not have.
    since: HashMap<(&'static str, String), (i64, Instant)>,
}

impl Kubelet {
    pub fn step(&mut self, world: &World, now: Instant) {
        for part in Part::ALL {
            for deployment in world.deployments(part) {
                let key = (part.namespace(), deployment.name.clone());
                if deployment.ready == deployment.wanted {
                    self.since.remove(&key);
                    continue;
                }
                let (wanted, since) = *self.since.entry(key.clone()).or_insert((deployment.wanted, now));
                if wanted != deployment.wanted {
                    self.since.insert(key, (deployment.wanted, now));
                } else if now.duration_since(since) >= POD_TIME {
                    let status = json!({"status": {"replicas": wanted, "readyReplicas": wanted, "availableReplicas": wanted}});
                    // The Deployments of this world are never deleted.
                    world.seed.store().patch("deployments.apps", part.namespace(), &deployment.name, &status).ok();
                    self.since.remove(&key);
                }
            }
        }
    }
}

/// What kube-controller-manager's node lifecycle controller would do: give up nodes that were silent for too long. It works only
/// while a kube-controller-manager pod of that shoot is ready.
#[derive(Default)]
pub struct NodeLifecycle {
    /// How many nodes it gave up so far, by shoot.
    given_up: HashMap<&'static str, usize>,
}

impl NodeLifecycle {
    pub fn step(&mut self, world: &World) {
        for shoot in &world.shoots {
            let awake = world.deployments(shoot.part).iter().any(|deployment| deployment.name == KCM && deployment.ready > 0);
            if !awake {
                continue;
            }
            for node in world.nodes(shoot.part) {
                let silent = node.age >= GRACE;
                if silent != node.unknown {
                    let status = if silent { "Unknown" } else { "True" };
                    // The nodes of this world are never deleted.
                    shoot.api.store().update("nodes", "", &node.name, |value| set_ready(value, status)).ok();
                    *self.given_up.entry(shoot.part.namespace()).or_default() += usize::from(silent);
                }
            }
        }
    }

    pub fn given_up(&self, part: Part) -> usize {
        self.given_up.get(part.namespace()).copied().unwrap_or_default()
    }
}

fn set_ready(node: &mut Value, status: &str) {
    if world::ready_condition(node) == status {
        return;
    }
    let conditions = node["status"]["conditions"].as_array_mut().into_iter().flatten();
    if let Some(ready) = conditions.into_iter().find(|condition| condition["type"] == "Ready") {
        ready["status"] = json!(status);
        ready["reason"] = json!(if status == "Unknown" { "NodeStatusUnknown" } else { "KubeletReady" });
    }
}
