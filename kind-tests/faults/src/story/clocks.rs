//! The nodes' clocks, and which nodes count.

use anyhow::Result;
use chrono::TimeDelta;
use rand::RngExt;
use serde_json::{Value, json};

use super::Story;
use crate::shoot::{MACHINES, Shoot};

impl Story {
    /// Clocks are off, step, or drift, for a while.
    pub(super) async fn clocks(&mut self) -> Result<()> {
        let share = self.actor.pick(&[1.0, 0.7, 0.3]);
        let nodes = self.some_nodes(share);
        for _ in 0..self.actor.rng.random_range(1..=3) {
            let skew = TimeDelta::milliseconds(self.actor.rng.random_range(-90_000..=90_000));
            // Up to 2 ms in a second: far more than any crystal, the most that NTP slews is a quarter of it.
            let drift = TimeDelta::microseconds(self.actor.rng.random_range(-2000..=2000));
            self.shoot.change_nodes(&nodes, |node, now| node.clock.set(skew, drift, now));
            self.shoot.note(format!("clocks are off by {skew}: {}", nodes.join(", ")));
            self.actor.wait(1.0..=10.0).await;
        }
        self.shoot.change_nodes(&nodes, |node, now| node.clock.set(TimeDelta::zero(), TimeDelta::zero(), now));
        self.shoot.note("clocks are right again");
        Ok(())
    }

    /// Nodes say that they do not count, for a while.
    pub(super) async fn node_conditions(&mut self) -> Result<()> {
        let nodes = self.some_nodes(0.5);
        let condition = |kind: &str, status: &str, reason: &str| {
            let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady"});
            json!({"status": {"conditions": [ready, {"type": kind, "status": status, "reason": reason}]}})
        };
        let unmanaged =
            |value: Value| json!({"metadata": {"annotations": {"node.machine.sapcloud.io/not-managed-by-mcm": value}}});
        let states = [
            (condition("DiskPressure", "True", "Full"), condition("DiskPressure", "False", "Enough")),
            (condition("InPlaceUpdate", "True", "ReadyForUpdate"), condition("InPlaceUpdate", "True", "UpdateSuccessful")),
            (unmanaged(json!("1")), unmanaged(Value::Null)),
        ];
        let (bad, good) = self.actor.take(states.into());
        self.shoot.note(format!("nodes do not count: {}: {bad}", nodes.join(", ")));
        set_counting(&self.shoot, &nodes, &bad, false).await?;
        self.actor.wait(2.0..=12.0).await;
        self.shoot.note("all nodes count again");
        set_counting(&self.shoot, &nodes, &good, true).await
    }

    /// Machines fail or end, for a while.
    pub(super) async fn machines(&mut self) -> Result<()> {
        let nodes = self.some_nodes(0.5);
        let phase = self.actor.pick(&["Failed", "Terminating"]);
        self.shoot.note(format!("machines are {phase}: {}", nodes.join(", ")));
        set_machines(&self.shoot, &nodes, phase)?;
        self.actor.wait(2.0..=12.0).await;
        self.shoot.note("all machines run again");
        set_machines(&self.shoot, &nodes, "Running")
    }

    /// A node joins for a while.
    pub(super) async fn node_set(&mut self) -> Result<()> {
        let name = format!("guest-{}", self.actor.rng.random_range(0..1_000_000));
        self.shoot.note(format!("{name} joins"));
        let phase = self.actor.seconds(0.0..=2.0);
        self.shoot.add_node(&name, phase).await?;
        self.actor.wait(2.0..=12.0).await;
        self.shoot.note(format!("{name} leaves"));
        self.shoot.remove_node(&name).await
    }
}

async fn set_counting(shoot: &Shoot, nodes: &[String], patch: &Value, counts: bool) -> Result<()> {
    shoot.know(|record, now| record.unsettle(now));
    shoot.change_nodes(nodes, |node, _| node.counts = counts);
    for name in nodes {
        shoot.api.patch("nodes", name, patch).await?;
    }
    shoot.know(|record, now| record.unsettle(now));
    Ok(())
}

fn set_machines(shoot: &Shoot, nodes: &[String], phase: &str) -> Result<()> {
    shoot.know(|record, now| record.unsettle(now));
    shoot.change_nodes(nodes, |node, _| node.backed = phase == "Running");
    let status = json!({"status": {"currentStatus": {"phase": phase}}});
    nodes.iter().try_for_each(|name| shoot.seed.patch(MACHINES, &shoot.namespace, name, &status).map(drop))?;
    Ok(())
}
