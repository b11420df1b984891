//! The nodes' clocks, and which nodes count.

use anyhow::Result;
use chrono::TimeDelta;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Story;
use crate::shoot::MACHINES;

impl Story {
    /// Clocks are off, step, or drift, for a while.
    pub(super) async fn clocks(&mut self) -> Result<()> {
        let nodes = self.node_names();
        let share = *self.rng.pick(&[1.0, 0.7, 0.3]);
        let chosen = self.rng.some(&nodes, share);
        let steps = self.rng.number(1..=3);
        for _ in 0..steps {
            let skew = TimeDelta::milliseconds(self.rng.number(-90_000..=90_000));
            // Up to 2 ms in a second: far more than any crystal, the most that NTP slews is a quarter of it.
            let drift = TimeDelta::microseconds(self.rng.number(-2000..=2000));
            self.set_clocks(&chosen, skew, drift);
            self.shoot.note(format!("clocks are off by {skew}: {}", chosen.join(", ")));
            let time = self.rng.seconds(1.0, 10.0);
            self.pause(time).await;
        }
        self.set_clocks(&chosen, TimeDelta::zero(), TimeDelta::zero());
        self.shoot.note("clocks are right again");
        Ok(())
    }

    fn set_clocks(&self, nodes: &[String], skew: TimeDelta, drift: TimeDelta) {
        let mut record = self.shoot.record();
        for name in nodes {
            if let Some(node) = record.nodes.get_mut(name) {
                node.clock.set(skew, drift, Instant::now());
            }
        }
    }

    /// Nodes say that they do not count, for a while.
    pub(super) async fn node_conditions(&mut self) -> Result<()> {
        let nodes = self.node_names();
        let chosen = self.rng.some(&nodes, 0.5);
        let condition = |kind: &str, status: &str, reason: &str| {
            let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady"});
            json!({"status": {"conditions": [ready, {"type": kind, "status": status, "reason": reason}]}})
        };
        let unmanaged =
            |value: Value| json!({"metadata": {"annotations": {"node.machine.sapcloud.io/not-managed-by-mcm": value}}});
        let (bad, good) = match self.rng.number(0..=2) {
            0 => (condition("DiskPressure", "True", "Full"), condition("DiskPressure", "False", "Enough")),
            1 => (condition("InPlaceUpdate", "True", "ReadyForUpdate"), condition("InPlaceUpdate", "True", "UpdateSuccessful")),
            _ => (unmanaged(json!("1")), unmanaged(Value::Null)),
        };
        self.shoot.note(format!("nodes do not count: {}: {bad}", chosen.join(", ")));
        self.set_counting(&chosen, &bad, false).await?;
        let time = self.rng.seconds(2.0, 12.0);
        self.pause(time).await;
        self.shoot.note("all nodes count again");
        self.set_counting(&chosen, &good, true).await
    }

    async fn set_counting(&self, nodes: &[String], patch: &Value, counts: bool) -> Result<()> {
        for name in nodes {
            {
                let mut record = self.shoot.record();
                record.unsettle(Instant::now());
                if let Some(node) = record.nodes.get_mut(name) {
                    node.counts = counts;
                }
            }
            self.shoot.patch_node(name, patch).await?;
        }
        self.shoot.record().unsettle(Instant::now());
        Ok(())
    }

    /// Machines fail or end, for a while.
    pub(super) async fn machines(&mut self) -> Result<()> {
        let nodes = self.node_names();
        let chosen = self.rng.some(&nodes, 0.5);
        let phase = *self.rng.pick(&["Failed", "Terminating"]);
        self.shoot.note(format!("machines are {phase}: {}", chosen.join(", ")));
        self.set_machines(&chosen, phase)?;
        let time = self.rng.seconds(2.0, 12.0);
        self.pause(time).await;
        self.shoot.note("all machines run again");
        self.set_machines(&chosen, "Running")
    }

    fn set_machines(&self, nodes: &[String], phase: &str) -> Result<()> {
        for name in nodes {
            {
                let mut record = self.shoot.record();
                record.unsettle(Instant::now());
                if let Some(node) = record.nodes.get_mut(name) {
                    node.backed = phase == "Running";
                }
            }
            let status = json!({"status": {"currentStatus": {"phase": phase}}});
            self.shoot.seed.patch(MACHINES, &self.shoot.namespace, name, &status)?;
        }
        Ok(())
    }

    /// A node joins for a while.
    pub(super) async fn node_set(&mut self) -> Result<()> {
        let name = format!("guest-{}", self.rng.number(0..=999_999));
        self.shoot.note(format!("{name} joins"));
        let phase = self.rng.seconds(0.0, 2.0);
        self.shoot.add_node(&name, phase).await?;
        let time = self.rng.seconds(2.0, 12.0);
        self.pause(time).await;
        self.shoot.note(format!("{name} leaves"));
        self.shoot.remove_node(&name).await
    }
}
