//! A shoot's kube-controller-manager, which acts in a real landscape and is not built here.

use serde_json::{Value, json};
use testbed::api::Store;

use crate::scene::ShootScene;
use crate::world::GRACE;

/// What kube-controller-manager's node lifecycle controller would do: give up nodes that were silent for too long. It works only
/// while a kube-controller-manager pod of that shoot is ready, and one that starts knows nothing of the silence before.
pub struct NodeLifecycle {
    /// Since when it works, in seconds of the play; `None` while it does not.
    since: Option<f64>,
    /// How many nodes it gave up so far.
    pub given_up: usize,
}

impl Default for NodeLifecycle {
    /// It was at work long before the play.
    fn default() -> Self {
        Self { since: Some(f64::NEG_INFINITY), given_up: 0 }
    }
}

impl NodeLifecycle {
    /// Gives up nodes, or takes them back, as the shoot looks now.
    pub fn step(&mut self, store: &Store, shoot: &ShootScene, now: f64) {
        let awake = shoot.kcm().ready > 0;
        self.since = awake.then_some(self.since.unwrap_or(now));
        for node in &shoot.nodes {
            let Some(silence) = self.silence(node.age, now) else { return };
            let silent = silence >= GRACE;
            if silent != node.unknown {
                self.given_up += usize::from(silent);
                let (status, reason) = if silent { ("Unknown", "NodeStatusUnknown") } else { ("True", "KubeletReady") };
                let set = |node: &mut Value| {
                    if let Some(at) = ready(node) {
                        let condition = &mut node["status"]["conditions"][at];
                        (condition["status"], condition["reason"]) = (json!(status), json!(reason));
                    }
                };
                // The nodes of this world are never deleted.
                store.update("nodes", "", &node.name, set).ok();
            }
        }
    }

    /// How long it has heard nothing of a node whose lease has this age, in seconds; `None` while it does not work.
    pub fn silence(&self, age: f64, now: f64) -> Option<f64> {
        self.since.map(|since| age.min(now - since))
    }

    pub fn has_given_up(node: &Value) -> bool {
        ready(node).is_some_and(|at| node["status"]["conditions"][at]["status"] == "Unknown")
    }
}

/// Which of a node's conditions is Ready.
fn ready(node: &Value) -> Option<usize> {
    node["status"]["conditions"].as_array()?.iter().position(|condition| condition["type"] == "Ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_starts_knows_nothing_of_the_silence_before() {
        let since = |since| NodeLifecycle { since, given_up: 0 };
        assert_eq!(NodeLifecycle::default().silence(50.0, 60.0), Some(50.0));
        assert_eq!(since(None).silence(50.0, 60.0), None);
        assert_eq!(since(Some(60.0)).silence(50.0, 63.0), Some(3.0));
        assert_eq!(since(Some(60.0)).silence(2.0, 63.0), Some(2.0));
    }
}
