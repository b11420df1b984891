//! Which shoots are probed, and what happens when that changes.

use std::time::Duration;

use anyhow::Result;
use testbed::{ShootPlan, scenario};

use crate::{UP, goes_down, healthy, through_an_outage};

/// Several probe intervals.
const LONG: Duration = Duration::from_secs(4);

#[test]
fn a_migrated_shoot_is_left_alone_and_probed_again_once_restored() -> Result<()> {
    scenario(async |bed| {
        let mut shoot = healthy(bed, "migrate", ShootPlan::default()).await?;
        goes_down(&shoot).await?;
        shoot
            .change(|body| body.operation = Some(("Migrate", "Processing")))
            .await?;
        shoot.silent_for(LONG).await?;
        let begin = shoot.history().len();
        shoot.nodes.heal_all();
        shoot.leases_younger_than(Duration::from_secs(3)).await?;
        shoot.silent_for(LONG).await?;
        shoot.untouched_since(begin)?;
        shoot
            .change(|body| body.operation = Some(("Restore", "Processing")))
            .await?;
        shoot.silent_for(LONG).await?;
        shoot.untouched_since(begin)?;
        shoot
            .change(|body| body.operation = Some(("Restore", "Succeeded")))
            .await?;
        shoot.free_at(&UP).await?;

        // From now on a running probe goes on, also while the shoot is created, restored or
        // reconciled again.
        for operation in [
            ("Restore", "Processing"),
            ("Create", "Error"),
            ("Reconcile", "Failed"),
            ("Delete", "Pending"),
        ] {
            shoot
                .change(|body| body.operation = Some(operation))
                .await?;
            shoot.after_probes(2).await?;
        }
        through_an_outage(&shoot).await?;
        shoot.end().await
    })
}
