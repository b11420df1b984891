//! Each shoot's kube-controller-manager, which acts in a real landscape and is not built here.
//!
//! It is stepped by the story, ten times a second, and has no task of its own.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{self, GRACE, KCM, Part, World};

/// What kube-controller-manager's node lifecycle controller would do: give up nodes that were silent for too long. It works only
/// while a kube-controller-manager pod of that shoot is ready, and one that starts knows nothing of the silence before.
#[derive(Default)]
pub struct NodeLifecycle {
    /// Since when it works, by shoot: `None` while it does not. A shoot that is not here had it at work long before the play.
    since: HashMap<&'static str, Option<Instant>>,
    /// How many nodes it gave up so far, by shoot.
    given_up: HashMap<&'static str, usize>,
}

impl NodeLifecycle {
    pub fn step(&mut self, world: &World, now: Instant) {
        for shoot in &world.shoots {
            let (part, namespace) = (shoot.part, shoot.part.namespace());
            let awake = world.deployments(part).iter().any(|deployment| deployment.name == KCM && deployment.ready > 0);
            match (self.since.get(namespace).copied(), awake) {
                (_, false) => _ = self.since.insert(namespace, None),
                (Some(None), true) => _ = self.since.insert(namespace, Some(now)),
                (None | Some(Some(_)), true) => {}
            }
            for node in world.nodes(part) {
                let Some(silence) = self.silence(part, node.age, now) else { continue };
                let silent = silence >= GRACE;
                if silent != node.unknown {
                    let status = if silent { "Unknown" } else { "True" };
                    // The nodes of this world are never deleted.
                    shoot.api.store().update("nodes", "", &node.name, |value| set_ready(value, status)).ok();
                    *self.given_up.entry(namespace).or_default() += usize::from(silent);
                }
            }
        }
    }

    /// How long it has heard nothing of a node whose lease has this age, in seconds; `None` while it does not work.
    pub fn silence(&self, part: Part, age: f64, now: Instant) -> Option<f64> {
        match self.since.get(part.namespace()) {
            None => Some(age),
            Some(since) => since.map(|since| age.min(now.duration_since(since).as_secs_f64())),
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_controller_that_starts_knows_nothing_of_the_silence_before() {
        let (now, part) = (Instant::now(), Part::CutOff);
        let working = |since| NodeLifecycle { since: HashMap::from([(part.namespace(), since)]), ..NodeLifecycle::default() };
        assert_eq!(NodeLifecycle::default().silence(part, 50.0, now), Some(50.0));
        assert_eq!(working(None).silence(part, 50.0, now), None);
        assert_eq!(working(Some(now)).silence(part, 50.0, now + Duration::from_secs(3)), Some(3.0));
        assert_eq!(working(Some(now)).silence(part, 2.0, now + Duration::from_secs(3)), Some(2.0));
    }
}
