//! The Shoot that Gardener embeds in a Cluster resource, as far as the prober reads it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::gardener;

/// The seed of shoots that do not move.
const SEED: &str = "bed";

/// A Shoot. The default has one worker pool, and its creation has succeeded.
#[derive(Clone, Debug)]
pub struct Body {
    /// status.lastOperation's type and state; none: not there yet.
    pub operation: Option<(&'static str, &'static str)>,
    /// spec.hibernation.enabled.
    pub hibernation: bool,
    /// status.hibernated.
    pub hibernated: bool,
    /// metadata.deletionTimestamp is set.
    pub deleting: bool,
    /// The worker pools, each with the node conditions that make its machines unhealthy, where it
    /// names any.
    pub workers: Vec<(&'static str, Vec<&'static str>)>,
    /// nodeMonitorGracePeriod.
    pub grace: Option<Duration>,
    /// spec.seedName and status.seedName.
    pub seeds: (&'static str, &'static str),
    /// The name of the Seed that the Cluster embeds beside the Shoot: the one that it is on.
    pub cluster_seed: &'static str,
}

impl Default for Body {
    fn default() -> Self {
        Self {
            operation: Some(("Create", "Succeeded")),
            hibernation: false,
            hibernated: false,
            deleting: false,
            workers: vec![("pool", Vec::new())],
            grace: None,
            seeds: (SEED, SEED),
            cluster_seed: SEED,
        }
    }
}

impl Body {
    /// With this last operation.
    pub fn operation(kind: &'static str, state: &'static str) -> Self {
        Self {
            operation: Some((kind, state)),
            ..Self::default()
        }
    }

    pub(super) fn shoot(&self, namespace: &str) -> Value {
        let worker = |(name, conditions): &(&str, Vec<&str>)| {
            let mut worker =
                json!({"name": name, "minimum": 1, "maximum": 5, "machine": {"type": "small"}});
            if !conditions.is_empty() {
                worker["machineControllerManager"] = json!({"nodeConditions": conditions});
            }
            worker
        };
        let grace = self.grace.map(|grace| format!("{}ms", grace.as_millis()));
        let mut shoot = gardener::cluster(namespace, grace.as_deref())["spec"]["shoot"].take();
        let spec = &mut shoot["spec"];
        spec["provider"]["workers"] = self.workers.iter().map(worker).collect();
        spec["hibernation"] = json!({"enabled": self.hibernation});
        spec["seedName"] = self.seeds.0.into();
        shoot["status"] = json!({"hibernated": self.hibernated, "technicalID": namespace, "seedName": self.seeds.1});
        if let Some((kind, state)) = self.operation {
            shoot["status"]["lastOperation"] = json!({
                "type": kind, "state": state, "progress": 50, "description": "", "lastUpdateTime": "2025-01-01T00:00:00Z",
            });
        }
        if self.deleting {
            shoot["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z".into();
        }
        shoot
    }
}
