//! A control plane that moves from one seed to another and stays at work meanwhile (GEP-39): at any time one of the two watchdogs looks
//! after the shoot.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::shoot::Body;
use testbed::{Prober, ProberConfig, Seed, Shoot, ShootPlan, own_scenario};

use crate::{DOWN, UP, end_alone, goes_down, hand_on, own_seed, shows};

const SOURCE: &str = "source";
const TARGET: &str = "target";
/// Several probe intervals.
const LONG: Duration = Duration::from_secs(4);

/// The Shoot on one of the seeds while its control plane moves.
fn moving(cluster_seed: &'static str) -> Body {
    Body { cluster_seed, seeds: (TARGET, SOURCE), ..Body::operation("LiveMigrate", "Processing") }
}

/// From now on the target is responsible for it.
fn handed_over(body: &mut Body) {
    body.seeds = (TARGET, TARGET);
}

async fn prober(seed: &Seed) -> Result<Prober> {
    Prober::start(seed, ProberConfig::default()).await
}

/// Waits until nothing is concluded in the one shoot that is held down, since it has no Machine.
async fn holds_without_machines(shoot: &Shoot, prober: &Prober) -> Result<()> {
    let shown = shows(prober.log_file(), "dwd_held_down_shoots{verdict=\"hold_no_machines\"}", 1.0..=1.0).await;
    shown.with_context(|| shoot.story())
}

#[test]
fn a_live_migration_is_protected_by_the_source_until_the_target_takes_over() -> Result<()> {
    own_scenario("needs two seeds", async |bed| {
        let (source_seed, target_seed) = (own_seed(bed).await?, own_seed(bed).await?);
        let plane = bed.lend().await?;
        // The same nodes and the same API server for both, at first with all Machines on the source. What makes a shoot removes the nodes
        // that are there, so the target, which has none, is the first.
        let plan = |seed, nodes| ShootPlan { nodes, body: moving(seed), ..ShootPlan::default() };
        let mut target = Shoot::create_at(plane.clone(), bed, &target_seed, "moving", plan(TARGET, 0)).await?;
        let mut source = Shoot::create_at(plane, bed, &source_seed, "moving", plan(SOURCE, 3)).await?;
        let (first, target_prober) = (prober(&source_seed).await?, prober(&target_seed).await?);
        source.after_probes(4).await?;
        let at_target = target.history().len();

        goes_down(&source).await?;
        target.silent_for(LONG).await?;
        let begin = source.history().len();
        source.delete_machines().await?;
        for node in source.nodes.names() {
            target.add_machine(node, node).await?;
        }
        holds_without_machines(&source, &first).await?;
        source.nodes.heal_all();
        source.leases_younger_than(Duration::from_secs(3)).await?;
        source.after_probes(2).await?;
        ensure!(first.terminate().await?.success());
        let second = prober(&source_seed).await?;
        holds_without_machines(&source, &second).await?;
        // Beyond its initial delay.
        source.after_probes(4).await?;
        source.untouched_since(begin)?;
        target.untouched_since(at_target)?;
        ensure!(target.relay.connections() == 0, "{}", target.story());

        source.change(handed_over).await?;
        source.silent_for(LONG).await?;
        target.change(handed_over).await?;
        target.after_probes(4).await?;
        source.nodes.cut_all();
        target.held_down(&DOWN).await?;
        source.nodes.heal_all();
        target.free_at(&UP).await?;
        source.untouched_since(begin)?;
        // It shares its API server with the source, which gives it back.
        target.delete_cluster().await?;
        end_alone(bed, source, (second, target_prober)).await?;
        hand_on(bed, &target_seed).await
    })
}
