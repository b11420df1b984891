//! A shoot that moves from one seed to another, whose control plane stays at work meanwhile: at any
//! time one of the two watchdogs looks after it. Both reach the same nodes by the same API server.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::shoot::Body;
use testbed::{Prober, ProberConfig, SeedCluster, ShootCluster, ShootPlan, Testbed, own_scenario};

use crate::{DOWN, UP, end_alone, goes_down, shows};

const OLD: &str = "old";
const NEW: &str = "new";
/// Several intervals of probes.
const LONG: Duration = Duration::from_secs(4);

/// The shoot on the old seed, which has all Machines, and on the new one.
async fn on_two_seeds(
    bed: &'static Testbed,
    name: &str,
    body: impl Fn(&'static str) -> Body,
) -> Result<(ShootCluster, ShootCluster)> {
    let (old_seed, new_seed) = (bed.own_seed().await?, bed.own_seed().await?);
    let plane = bed.lend().await?;
    let plan = |seed, nodes| ShootPlan {
        nodes,
        body: body(seed),
        ..ShootPlan::default()
    };
    // What makes a shoot removes the nodes that are there, so the one that has none is the first.
    let new = ShootCluster::create_at(plane.clone(), bed, &new_seed, name, plan(NEW, 0)).await?;
    let old = ShootCluster::create_at(plane, bed, &old_seed, name, plan(OLD, 3)).await?;
    Ok((old, new))
}

/// From now on the new seed has Machines for the nodes.
async fn add_machines(old: &ShootCluster, new: &ShootCluster) -> Result<()> {
    for node in old.nodes.names() {
        new.add_machine(node, node).await?;
    }
    Ok(())
}

async fn prober(seed: &SeedCluster) -> Result<Prober> {
    Prober::start(seed, ProberConfig::default()).await
}

/// Waits until a prober says this of its only shoot.
async fn finds(shoot: &ShootCluster, prober: &Prober, series: &str) -> Result<()> {
    shows(prober.log_file(), series, 1.0..=1.0)
        .await
        .with_context(|| shoot.story())
}

/// Both end. They share an API server, which the old one gives back.
async fn end(old: ShootCluster, new: &ShootCluster, probers: (Prober, Prober)) -> Result<()> {
    new.delete_cluster().await?;
    end_alone(old, probers).await
}

#[test]
fn a_live_migration_is_protected_by_the_source_until_the_target_takes_over() -> Result<()> {
    own_scenario("needs two seeds", async |bed| {
        // GEP-39
        let moving = |seed| Body {
            cluster_seed: seed,
            seeds: (NEW, OLD),
            ..Body::operation("LiveMigrate", "Processing")
        };
        let handed_over = |body: &mut Body| body.seeds = (NEW, NEW);
        let (mut source, mut target) = on_two_seeds(bed, "moving", moving).await?;
        let (first, target_prober) = (prober(&source.seed).await?, prober(&target.seed).await?);
        source.after_probes(4).await?;
        let at_target = target.history().len();

        goes_down(&source).await?;
        target.silent_for(LONG).await?;
        let begin = source.history().len();
        source.delete_machines().await?;
        add_machines(&source, &target).await?;
        let without_machines = "dwd_held_down_shoots{verdict=\"hold_no_machines\"}";
        finds(&source, &first, without_machines).await?;
        ensure!(first.terminate().await?.success());
        let second = prober(&source.seed).await?;
        finds(&source, &second, without_machines).await?;
        // Beyond its initial delay.
        source.after_probes(4).await?;
        source.untouched_since(begin)?;
        // It is the source's still, and the nodes are seen to renew.
        source.nodes.heal_all();
        source.free_at(&UP).await?;
        let begin = source.history().len();
        target.untouched_since(at_target)?;
        ensure!(target.proxy.connections() == 0, "{}", target.story());

        source.change(handed_over).await?;
        source.silent_for(LONG).await?;
        target.change(handed_over).await?;
        target.after_probes(4).await?;
        source.nodes.cut_all();
        target.held_down(&DOWN).await?;
        source.nodes.heal_all();
        target.free_at(&UP).await?;
        source.untouched_since(begin)?;
        end(source, &target, (second, target_prober)).await
    })
}
