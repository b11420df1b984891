//! The scenarios: the real binary against real control planes.
//!
//! They mostly wait, so more of them run side by side than there are cores (RUST_TEST_THREADS). Ordinary ones share a seed and
//! its prober, with a namespace and a shoot of their own; those that need their own configuration, or kill the prober, have a seed
//! of their own. Each ends by checking that nothing it asked for was forbidden.

mod as_in_production;
mod back_off;
mod bed;
mod candidates;
mod clocks;
mod crash;
mod credentials;
mod dependents;
mod election;
mod faults;
mod frugality;
mod gardeners_objects;
mod given;
mod instruments;
mod kinds;
mod lifecycle;
mod live_migration;
mod outage;
mod owner;
mod rbac;
mod reachability;
mod restore;
mod weeder;

use anyhow::{Result, ensure};
use testbed::shoot::{CA, KCM, MCM};
use testbed::{Bed, Shoot, ShootPlan};

/// What an outage leaves of the usual three, at their usual replicas.
const DOWN: [(&str, &str); 3] = [(KCM, "2"), (MCM, "1"), (CA, "1")];
/// The usual three with nothing held down.
const UP: [(&str, i64); 3] = [(KCM, 2), (MCM, 1), (CA, 1)];

/// A shoot on the shared seed.
async fn shoot(bed: &'static Bed, name: &str, plan: ShootPlan) -> Result<Shoot> {
    Shoot::create(bed, &bed.seed().await?, name, plan).await
}

/// A shoot on the shared seed that has been seen healthy.
async fn healthy(bed: &'static Bed, name: &str, plan: ShootPlan) -> Result<Shoot> {
    let shoot = shoot(bed, name, plan).await?;
    shoot.after_probes(2).await?;
    Ok(shoot)
}

/// Since this entry of the shoot's history the usual three came back in their order.
fn came_back_in_order(shoot: &Shoot, begin: usize) -> Result<()> {
    let order = shoot.order(begin, |state| state.replicas > 0);
    ensure!(order == [KCM, MCM, CA], "{order:?}\n{}", shoot.story());
    Ok(())
}

/// In an outage all go down, and after it they come back.
async fn through_an_outage(shoot: &Shoot) -> Result<()> {
    shoot.nodes.cut_all();
    shoot.held_down(&DOWN).await?;
    shoot.nodes.heal_all();
    shoot.free_at(&UP).await
}
