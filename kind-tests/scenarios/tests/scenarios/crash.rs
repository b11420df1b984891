//! The prober ends or stops in the middle of its work, and another one, or it itself, goes on from what it left.

use anyhow::{Result, ensure};
use testbed::shoot::PATIENCE;
use testbed::{Prober, ShootPlan, scenario};
use tokio::time::Instant;

use crate::{DOWN, PATIENT, QUICK, UP, alone, end_alone, with_args, writes};

#[test]
fn a_prober_killed_after_any_write_is_followed_by_one_that_ends_its_work() -> Result<()> {
    scenario(async |bed| {
        let (shoot, mut prober) = alone(bed, "killed", ShootPlan::default(), with_args(&QUICK)).await?;
        for cut in [true, false] {
            let begin = shoot.history().len();
            if cut {
                shoot.nodes.cut_all()
            } else {
                shoot.nodes.heal_all()
            }
            for count in 1..=3 {
                writes(&shoot, begin, count).await?;
                prober.kill().await?;
                prober = Prober::start(&shoot.seed, with_args(&QUICK)).await?;
            }
            // The last one starts when all is done, and leaves it so.
            if cut {
                shoot.held_down(&DOWN).await?
            } else {
                shoot.free_at(&UP).await?
            }
            let begin = shoot.history().len();
            shoot.after_probes(6).await?;
            shoot.untouched_since(begin)?;
        }
        end_alone(bed, shoot, prober).await
    })
}

#[test]
fn a_prober_that_was_held_up_looks_again_before_it_acts() -> Result<()> {
    scenario(async |bed| {
        let (shoot, prober) = alone(bed, "held-up", ShootPlan::default(), with_args(&PATIENT)).await?;
        let begin = shoot.history().len();
        prober.pause(true)?;
        // Renewals go on unseen for far longer than the grace.
        let since = Instant::now();
        shoot
            .eventually("a long stop", PATIENCE, async || {
                ensure!(since.elapsed().as_secs() > 10, "{:?}", since.elapsed());
                Ok(())
            })
            .await?;
        prober.pause(false)?;
        shoot.after_probes(3).await?;
        shoot.untouched_since(begin)?;
        end_alone(bed, shoot, prober).await
    })
}
