//! Nodes whose clocks are off, or step.

use anyhow::Result;
use chrono::TimeDelta;
use testbed::{ShootPlan, scenario};

use crate::{healthy, through_an_outage};

#[test]
fn nodes_whose_clocks_are_off_are_judged_like_all_others() -> Result<()> {
    scenario(async |bed| {
        let skew = [-60, 60, -20].map(TimeDelta::seconds).into();
        let shoot = healthy(bed, "skewed", ShootPlan { skew, ..ShootPlan::default() }).await?;
        let begin = shoot.history().len();
        shoot.after_probes(8).await?;
        shoot.untouched_since(begin)?;
        through_an_outage(&shoot).await?;

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
