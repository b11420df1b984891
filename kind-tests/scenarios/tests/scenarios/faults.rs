//! A seed's API server that is killed, and forgets what watches go on from.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::{SeedCluster, scenario};

use crate::{USUAL, alone};

/// How often the Clusters have been listed.
fn lists(seed: &SeedCluster) -> usize {
    let mut lists = seed.asked();
    lists.retain(|it| it.verb == "list" && it.resource == "clusters" && it.code == 200);
    lists.len()
}

#[test]
fn seed_that_was_away_is_caught_up_with() -> Result<()> {
    scenario(async |bed| {
        // The lead outlasts every stop: an agent that loses it ends, and what is shown is what it
        // does otherwise.
        let args = [
            "--leader-elect-lease-duration=120s",
            "--leader-elect-renew-deadline=100s",
        ];
        let (shoot, _prober) = alone(bed, "seed-away", &args).await?;
        let (seed, server) = (&shoot.seed, shoot.seed.plane());
        for cut in [true, false] {
            let (begin, before) = (shoot.history().len(), lists(seed));
            if cut {
                shoot.nodes.cut_all();
            } else {
                shoot.nodes.heal_all();
            }
            // In the middle of a flow, which goes on to its end. What has happened since the watches
            // were cut is forgotten: all is listed again.
            let written = async || {
                let first = shoot.writes_since(begin).into_iter().next();
                first.context("no write")
            };
            shoot.eventually("a write", written).await?;
            server.process().signal(Signal::SIGKILL)?;
            bed.compact().await?;
            server.start_again().await?;
            let again = async || {
                let lists = lists(seed);
                ensure!(lists > before, "{lists} lists");
                Ok(())
            };
            shoot.eventually("new lists", again).await?;
            if cut {
                shoot.held_down(&USUAL).await?;
            } else {
                shoot.free_at(&USUAL).await?;
            }
        }
        // An API server that has just begun does not know its roles yet, and forbids everything
        // for a moment.
        Ok(())
    })
}
