//! What is not asked for and not written.

use std::time::Duration;

use api_server::{Fault, When};
use testbed::PATIENCE;
use tokio::time::timeout;

use super::world::{CA, LEASES, ProberWorld, at, held};

#[tokio::test(start_paused = true)]
async fn a_healthy_shoot_costs_one_request_a_probe_and_the_seed_none() {
    let world = ProberWorld::running().await;
    let [seed, shoot] = [&world.seed, &world.shoot].map(|api| api.requests());
    let before = [seed.total(), shoot.total() + 4];
    world.probes(4).await;
    assert_eq!([seed.total(), shoot.total()], before);
    assert_eq!(world.shoot.connections().accepted, 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_nodes_do_not_wait_for_leases_that_come_late() {
    let world = ProberWorld::running().await;
    // Less than would have the leases requested on another connection, too.
    let late = Duration::from_millis(400);
    let leases = When::request("GET", LEASES);
    world.shoot.faults().add(leases, Fault::Delay(late));
    world.nodes.cut_all();
    let beside = world.shoot.requests().wait_for(|all| {
        let nodes = all.iter().find(|record| record.resource == "nodes")?;
        let leases = all.iter().rfind(|record| {
            record.path == LEASES && record.at < nodes.at && record.connection != nodes.connection
        })?;
        Some(nodes.at? - leases.at?)
    });
    let after = timeout(PATIENCE, beside).await.expect("they are listed");
    assert!(after < late, "{after:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_cannot_be_asked_is_not_scaled_in_either_direction() {
    let world = ProberWorld::running().await;
    world.shoot.faults().add(When::any(), Fault::status(503));
    world.scale(CA, 0);
    world.nodes.cut_all();
    // The leases expire after 3 s.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(world.seed.requests().writes(), 0, "{:?}", world.written());
    world.shoot.faults().clear();
    world.until([held("1"), held("1"), at(0)]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_asks_for_time_gets_it() {
    // Fault 1
    let world = ProberWorld::running().await;
    let once = When::request("GET", LEASES).once();
    world.shoot.faults().add(once, Fault::throttle(4));
    let next = world.shoot.requests().wait_for(|all| {
        let throttled = all.iter().position(|record| record.status == Some(429))?;
        Some(all.get(throttled + 1)?.at? - all[throttled].at?)
    });
    let waited = timeout(PATIENCE, next).await.expect("it is asked again");
    assert!((4..8).contains(&waited.as_secs()), "{waited:?}");
    world.end().await;
}
