//! The shoot's life: hibernation, migration, deletion, a pause, another grace period.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use testbed::gardener::PAUSE;

use super::actor::Actor;
use crate::pace::{GRACE, INITIAL_DELAY, LONG_GRACE};
use crate::shoot::{CLUSTERS, SoakShoot};

/// From now on the shoot must not be probed.
pub fn stop(shoot: &SoakShoot, what: &str) {
    shoot.happens(what, |record, now| {
        record.stopped_since = record.stopped_since.or(Some(now))
    });
}

/// It may be, from the initial delay on. Noted before it is so: the watchdog may act at once.
pub fn go_on(shoot: &SoakShoot, what: &str) {
    shoot.happens(what, |record, now| {
        (record.stopped_since, record.watched_from) = (None, now + INITIAL_DELAY)
    });
}

fn operation(shoot: &SoakShoot, kind: &str, state: &str) -> Result<()> {
    let operation = json!({"type": kind, "state": state, "progress": 50});
    shoot.change(|shoot| shoot["status"]["lastOperation"] = operation)
}

pub fn set_grace(shoot: &SoakShoot, grace: Duration) -> Result<()> {
    shoot.happens(
        format!("its grace is {grace:?} from now on"),
        |record, now| {
            record.grace = grace;
            record.unsettle(now);
        },
    );
    let period = format!("{}s", grace.as_secs());
    shoot.change(|shoot| {
        shoot["spec"]["kubernetes"]["kubeControllerManager"]["nodeMonitorGracePeriod"] =
            json!(period)
    })
}

/// The shoot sleeps for a while.
pub(super) async fn hibernation(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    shoot.change(|shoot| shoot["spec"]["hibernation"] = json!({"enabled": true}))?;
    stop(shoot, "hibernated");
    actor.wait(0.2..=3.0).await;
    shoot.scale_all(false);
    actor.wait(1.0..=8.0).await;
    // Waking up: the control plane comes back before the shoot may be probed.
    shoot.change(|shoot| {
        shoot["spec"]["hibernation"] = json!({"enabled": false});
        shoot["status"]["hibernated"] = json!(true);
    })?;
    shoot.note("wakes up");
    if actor.chance(0.7) {
        shoot.scale_all(true);
    }
    actor.wait(0.5..=3.0).await;
    go_on(shoot, "is awake");
    shoot.change(|shoot| shoot["status"]["hibernated"] = json!(false))
}

/// The control plane moves away and comes back.
pub(super) async fn migration(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    operation(shoot, "Migrate", "Processing")?;
    stop(shoot, "migrates");
    actor.wait(2.0..=8.0).await;
    operation(shoot, "Restore", "Processing")?;
    shoot.note("is being restored");
    actor.wait(0.5..=4.0).await;
    go_on(shoot, "was restored");
    operation(shoot, "Restore", "Succeeded")
}

/// The shoot is deleted, and another one gets its name.
pub(super) async fn deletion(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    if actor.chance(0.5) {
        shoot.change(|shoot| {
            shoot["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")
        })?;
        stop(shoot, "is being deleted");
        actor.wait(0.1..=3.0).await;
    }
    shoot.seed.delete(CLUSTERS, "", &shoot.namespace)?;
    stop(shoot, "is deleted");
    actor.wait(0.0..=6.0).await;
    go_on(shoot, "is recreated");
    shoot.publish()
}

/// Operators want it left alone for a while.
pub(super) async fn operators_pause(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    let annotate = |value: Value| {
        let annotation = json!({"metadata": {"annotations": {PAUSE: value}}});
        shoot
            .seed
            .patch("namespaces", "", &shoot.namespace, &annotation)
    };
    annotate(json!("true"))?;
    shoot.happens("operators pause it", |record, now| {
        record.paused_since = Some(now)
    });
    actor.wait(3.0..=12.0).await;
    shoot.happens("operators let it go on", |record, now| {
        (record.paused_since, record.paused_until) = (None, Some(now));
        record.watched_from = record.watched_from.max(now);
    });
    annotate(Value::Null)?;
    Ok(())
}

/// Another grace period for a while.
pub(super) async fn grace(shoot: &SoakShoot, actor: &mut Actor) -> Result<()> {
    set_grace(shoot, LONG_GRACE)?;
    actor.wait(5.0..=20.0).await;
    set_grace(shoot, GRACE)
}
