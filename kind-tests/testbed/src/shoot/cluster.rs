//! The Shoot that Gardener embeds in a Cluster resource, as far as the prober reads it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::gardener;

/// A Shoot. The default has one worker pool, and its creation has succeeded.
#[derive(Clone, Debug)]
pub struct Body {
    /// status.lastOperation's type and state.
    pub operation: (&'static str, &'static str),
    /// The node conditions that make machines of the worker pool unhealthy, where it names any.
    pub conditions: Vec<&'static str>,
}

impl Default for Body {
    fn default() -> Self {
        Self {
            operation: ("Create", "Succeeded"),
            conditions: Vec::new(),
        }
    }
}

impl Body {
    /// The Cluster of a shoot with this nodeMonitorGracePeriod.
    pub(super) fn cluster(&self, namespace: &str, grace: Duration) -> Value {
        let grace = format!("{}ms", grace.as_millis());
        let mut cluster = gardener::cluster(namespace, Some(&grace));
        let shoot = &mut cluster["spec"]["shoot"];
        let mut worker = json!({"name": "pool", "minimum": 1, "maximum": 5});
        if !self.conditions.is_empty() {
            worker["machineControllerManager"] = json!({"nodeConditions": self.conditions});
        }
        shoot["spec"]["provider"]["workers"] = json!([worker]);
        let (kind, state) = self.operation;
        shoot["status"]["lastOperation"] = json!({
            "type": kind, "state": state, "progress": 50, "lastUpdateTime": "2025-01-01T00:00:00Z",
        });
        cluster
    }
}
