//! A seed's API server that is killed and starts again after etcd has forgotten what its watches go
//! on from.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use testbed::{SeedCluster, ShootPlan, own_scenario};

use crate::weeder::ground::{Ground, no_window};
use crate::weeder::on_ground;
use crate::weeder::plane::Plane;
use crate::{PATIENT, alone, end_alone, shows, through_an_outage, with_args};

pub fn kill(seed: &SeedCluster) -> Result<()> {
    seed.plane()
        .server()
        .context("own")?
        .process()
        .signal(Signal::SIGKILL)
}

pub async fn start_again(seed: &SeedCluster) -> Result<()> {
    seed.plane().server().context("own")?.start_again().await
}

/// How often the Clusters have been listed.
fn lists(seed: &SeedCluster) -> usize {
    seed.asked()
        .iter()
        .filter(|asked| asked.verb == "list" && asked.resource == "clusters" && asked.code == 200)
        .count()
}

/// An API server that has just begun does not know its roles yet, and forbids everything for a
/// moment.
pub fn plan() -> ShootPlan {
    ShootPlan {
        forbidden: true,
        ..ShootPlan::default()
    }
}

#[test]
fn watches_that_were_cut_before_a_compaction_are_restarted_and_nothing_is_missed() -> Result<()> {
    own_scenario("needs an API server that may be killed", async |bed| {
        let (shoot, prober) = alone(bed, "compacted", plan(), with_args(&PATIENT)).await?;
        let seed = shoot.seed.clone();
        let (begin, before) = (shoot.history().len(), lists(&seed));
        kill(&seed)?;
        bed.compact().await?;
        start_again(&seed).await?;
        // What has happened since the watches were cut is forgotten: all is listed again.
        shoot
            .eventually("new lists", async || {
                let lists = lists(&seed);
                ensure!(lists > before, "{lists} lists");
                Ok(())
            })
            .await?;
        shoot.after_probes(2).await?;
        shoot.untouched_since(begin)?;
        through_an_outage(&shoot).await?;
        end_alone(shoot, prober).await
    })
}

#[test]
fn a_weeder_whose_watches_were_cut_before_a_compaction_invents_no_recovery_and_misses_none()
-> Result<()> {
    on_ground(async |bed| {
        let ground = Ground::own(bed).await?;
        let weeder = ground.leader(&PATIENT).await?;
        let plane = Plane::on(&ground, "compacted", 1).await?;
        // etcd serves all the time, and kube-apiserver crash-loops for reasons of its own after the
        // windows of the start.
        let servers = plane.outage(Some(&weeder)).await?;
        kill(&ground.seed)?;
        bed.compact().await?;
        start_again(&ground.seed).await?;
        shows(
            weeder.log_file(),
            "dwd_weeder_watch_restarts_total{resource=\"endpointslices\"}",
            1.0..,
        )
        .await?;
        no_window(&weeder).await?;
        ensure!(
            plane.pods("apiserver").await? == servers,
            "deleted without a recovery"
        );
        plane.recovery(&servers).await?;
        plane.clear(1).await
    })
}
