//! Nodes whose clocks are off, or step.

use anyhow::Result;
use chrono::TimeDelta;
use testbed::{ShootPlan, scenario};

use crate::{healthy, through_an_outage};

#[test]
fn nodes_whose_clocks_are_off_are_judged_like_all_others() -> Result<()> {
    scenario(async |bed| {
        let skew = vec![TimeDelta::seconds(-60), TimeDelta::seconds(60), TimeDelta::seconds(-20)];
        let shoot = healthy(bed, "skewed", ShootPlan { skew, ..ShootPlan::default() }).await?;
        let begin = shoot.history().len();
        shoot.after_probes(8).await?;
        shoot.untouched_since(begin)?;
        through_an_outage(&shoot).await?;
        shoot.end().await
    })
}

#[test]
fn clocks_that_step_are_no_outage() -> Result<()> {
    scenario(async |bed| {
        let shoot = healthy(bed, "steps", ShootPlan::default()).await?;
        let begin = shoot.history().len();
        for seconds in [-60, 60, -5, 0] {
            shoot.nodes.skew(0..3, TimeDelta::seconds(seconds));
            shoot.after_probes(5).await?;
            shoot.untouched_since(begin)?;
        }
        through_an_outage(&shoot).await?;
        shoot.end().await
    })
}
