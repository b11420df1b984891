//! The shoot's life: hibernation, migration, deletion, a pause, another grace period.

use std::time::Duration;
use testbed::api::gardener::PAUSE;

use anyhow::Result;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Story;
use crate::pace::{GRACE, INITIAL_DELAY, LONG_GRACE};
use crate::shoot::CLUSTERS;

impl Story {
    /// From now on the shoot must not be probed.
    fn stop(&self, what: &str) {
        let mut record = self.shoot.record();
        let now = Instant::now();
        record.note(now, what);
        record.stopped_since.get_or_insert(now);
    }

    /// It may be, from the initial delay on. Noted before it is so: the watchdog may act at once.
    fn go_on(&self, what: &str) {
        let mut record = self.shoot.record();
        let now = Instant::now();
        record.note(now, what);
        record.stopped_since = None;
        record.watched_from = now + INITIAL_DELAY;
    }

    fn operation(&self, kind: &str, state: &str) -> Result<()> {
        let operation = json!({"type": kind, "state": state, "progress": 50});
        self.shoot.change(|shoot| shoot["status"]["lastOperation"] = operation)
    }

    /// The shoot sleeps for a while.
    pub(super) async fn hibernation(&mut self) -> Result<()> {
        self.shoot.change(|shoot| shoot["spec"]["hibernation"] = json!({"enabled": true}))?;
        self.stop("hibernated");
        let time = self.rng.seconds(0.2, 3.0);
        self.pause(time).await;
        self.scale_all(false);
        let time = self.rng.seconds(1.0, 8.0);
        self.pause(time).await;
        // Waking up: the control plane comes back before the shoot may be probed.
        self.shoot.change(|shoot| {
            shoot["spec"]["hibernation"] = json!({"enabled": false});
            shoot["status"]["hibernated"] = json!(true);
        })?;
        self.shoot.note("wakes up");
        let back = self.rng.chance(0.7);
        if back {
            self.scale_all(true);
        }
        let time = self.rng.seconds(0.5, 3.0);
        self.pause(time).await;
        self.go_on("is awake");
        self.shoot.change(|shoot| shoot["status"]["hibernated"] = json!(false))
    }

    /// The control plane moves away and comes back.
    pub(super) async fn migration(&mut self) -> Result<()> {
        self.operation("Migrate", "Processing")?;
        self.stop("migrates");
        let time = self.rng.seconds(2.0, 8.0);
        self.pause(time).await;
        self.operation("Restore", "Processing")?;
        self.shoot.note("is being restored");
        let time = self.rng.seconds(0.5, 4.0);
        self.pause(time).await;
        self.go_on("was restored");
        self.operation("Restore", "Succeeded")
    }

    /// The shoot is deleted, and another one gets its name.
    pub(super) async fn deletion(&mut self) -> Result<()> {
        if self.rng.chance(0.5) {
            self.shoot.change(|shoot| shoot["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"))?;
            self.stop("is being deleted");
            let time = self.rng.seconds(0.1, 3.0);
            self.pause(time).await;
        }
        self.shoot.seed.delete(CLUSTERS, "", &self.shoot.namespace)?;
        self.stop("is deleted");
        let time = self.rng.seconds(0.0, 6.0);
        self.pause(time).await;
        self.go_on("is made anew");
        self.shoot.publish()
    }

    /// Operators want it left alone for a while.
    pub(super) async fn operators_pause(&mut self) -> Result<()> {
        let annotate = |value: Value| json!({"metadata": {"annotations": {PAUSE: value}}});
        let namespace = self.shoot.namespace.clone();
        self.shoot.seed.patch("namespaces", "", &namespace, &annotate(json!("true")))?;
        {
            let mut record = self.shoot.record();
            let now = Instant::now();
            record.note(now, "operators pause it");
            record.paused_since = Some(now);
        }
        let time = self.rng.seconds(3.0, 12.0);
        self.pause(time).await;
        {
            let mut record = self.shoot.record();
            let now = Instant::now();
            record.note(now, "operators let it go on");
            record.paused_since = None;
            record.watched_from = record.watched_from.max(now);
        }
        self.shoot.seed.patch("namespaces", "", &namespace, &annotate(Value::Null))?;
        Ok(())
    }

    /// Another grace period for a while.
    pub(super) async fn grace(&mut self) -> Result<()> {
        self.set_grace(LONG_GRACE)?;
        let time = self.rng.seconds(5.0, 20.0);
        self.pause(time).await;
        self.set_grace(GRACE)
    }

    fn set_grace(&self, grace: Duration) -> Result<()> {
        {
            let mut record = self.shoot.record();
            let now = Instant::now();
            record.grace = grace;
            record.unsettle(now);
            record.note(now, format!("its grace is {grace:?} from now on"));
        }
        self.shoot.change(|shoot| {
            let period = format!("{}s", grace.as_secs());
            shoot["spec"]["kubernetes"]["kubeControllerManager"]["nodeMonitorGracePeriod"] = json!(period);
        })
    }
}
