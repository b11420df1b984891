//! A prober that is killed at any of its writes, before or after the API server applied it, and one
//! that takes over.

use api_server::{Fault, When};
use serde_json::json;
use testbed::PATIENCE;
use tokio::time::timeout;

use super::world::{CA, CONFIG, MCM, ProberWorld, at, held, scales};

/// The writes of an outage and of its end: three down, three up.
const WRITES: u64 = 6;

/// Kills the prober when it makes its write number `fatal`, counted from 1, which then meets
/// `fault`.
async fn killed_at(fatal: u64, fault: Fault) {
    let mut world = ProberWorld::running().await;
    world.change(MCM, |object| object["spec"]["replicas"] = json!(2));
    world.change(CA, |object| object["spec"]["replicas"] = json!(3));
    let id = world
        .seed
        .faults()
        .add(When::matches(scales).after(fatal - 1).once(), fault);

    world.nodes.cut_all();
    if fatal <= WRITES / 2 {
        take_over(&mut world, id).await;
    }
    world.until([held("1"), held("2"), held("3")]).await;
    world.nodes.heal_all();
    if fatal > WRITES / 2 {
        take_over(&mut world, id).await;
    }
    world.until([at(1), at(2), at(3)]).await;
    world.end().await;
}

async fn take_over(world: &mut ProberWorld, fault: api_server::FaultId) {
    timeout(PATIENCE, world.seed.faults().met(fault, 1))
        .await
        .expect("the fatal write");
    world.kill().await;
    world.start(CONFIG);
}

#[tokio::test]
async fn killed_before_a_write_is_applied_the_next_one_ends_the_work() {
    futures::future::join_all((1..=WRITES).map(|fatal| killed_at(fatal, Fault::Stall))).await;
}

#[tokio::test]
async fn killed_after_a_write_is_applied_the_next_one_ends_the_work() {
    futures::future::join_all((1..=WRITES).map(|fatal| killed_at(fatal, Fault::StallAfter))).await;
}
