//! What is not asked for and not written.

use std::time::Duration;

use api_server::{Fault, When};
use serde_json::json;
use testbed::PATIENCE;
use testbed::gardener;
use tokio::time::{Instant, timeout};

use super::log::SHOOT_TOKEN;
use super::world::{CA, CONFIG, LEASES, ProberWorld, at, held};

#[tokio::test(start_paused = true)]
async fn a_healthy_shoot_costs_one_request_a_probe_and_the_seed_none() {
    let world = ProberWorld::running().await;
    let (seed, shoot) = (
        world.seed.requests().total(),
        world.shoot.requests().total(),
    );
    world.probes(4).await;
    assert_eq!(world.seed.requests().total(), seed);
    assert_eq!(world.shoot.requests().total(), shoot + 4);
    assert_eq!(world.seed.requests().writes(), 0);
    assert_eq!(world.shoot.connections().accepted, 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_the_nodes_are_listed_over_the_connection_of_the_leases() {
    let world = ProberWorld::running().await;
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    assert_eq!(world.shoot.connections().accepted, 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_nodes_do_not_wait_for_leases_that_come_late() {
    let world = ProberWorld::running().await;
    // Less than would have the leases requested on another connection, too.
    let late = Fault::Delay(Duration::from_millis(400));
    world.shoot.faults().add(When::request("GET", LEASES), late);
    world.nodes.cut_all();
    let beside = world.shoot.requests().wait_for(|all| {
        let nodes = all.iter().find(|record| record.resource == "nodes")?;
        let leases = all.iter().rfind(|record| {
            record.path == LEASES && record.at < nodes.at && record.connection != nodes.connection
        })?;
        Some(nodes.at? - leases.at?)
    });
    let after = timeout(PATIENCE, beside).await.expect("they are listed");
    assert!(after < Duration::from_millis(400), "{after:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_cannot_be_asked_is_not_scaled_in_either_direction() {
    let world = ProberWorld::running().await;
    let id = world.shoot.faults().add(When::any(), Fault::status(503));
    let refused = async |count: u64| {
        timeout(PATIENCE, world.shoot.faults().met(id, count))
            .await
            .expect("it goes on asking");
    };
    refused(2).await;
    world.change(CA, |object| object["spec"]["replicas"] = json!(0));
    refused(4).await;
    world.nodes.cut_all();
    // The leases expire after 3 s.
    let cut = Instant::now();
    while cut.elapsed() < Duration::from_secs(5) {
        refused(world.shoot.faults().hits(id) + 1).await;
    }
    assert_eq!(world.seed.requests().writes(), 0, "{:?}", world.written());
    world.shoot.faults().clear();
    world.until([held("1"), held("1"), at(0)]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_asks_for_time_gets_it() {
    // Fault 1
    let world = ProberWorld::running().await;
    world
        .shoot
        .faults()
        .add(When::request("GET", LEASES).once(), Fault::throttle(4));
    let next = world.shoot.requests().wait_for(|all| {
        let throttled = all.iter().position(|record| record.status == Some(429))?;
        Some((all[throttled].at?, all.get(throttled + 1)?.at?))
    });
    let (throttled, next) = timeout(PATIENCE, next).await.expect("it is asked again");
    assert!(
        next - throttled >= Duration::from_secs(4),
        "{:?}",
        next - throttled
    );
    assert!(
        next - throttled < Duration::from_secs(8),
        "{:?}",
        next - throttled
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn first_looks_are_spread_over_the_first_half_of_the_initial_delay() {
    let mut world = ProberWorld::new().await;
    let kubeconfig = world.shoot.kubeconfig(SHOOT_TOKEN);
    for number in 0..20 {
        let namespace = format!("shoot--p--{number}");
        world.apply(gardener::probe_secret(&namespace, &kubeconfig));
        world.apply(gardener::cluster(&namespace, None));
    }
    let begin = Instant::now();
    world.start(&CONFIG.replace("initialDelay: 0s", "initialDelay: 6s"));
    let all = world.shoot.requests().wait_for(|all| {
        // A first probe asks for the version.
        let first: Vec<Instant> = all
            .iter()
            .filter(|record| record.path == "/version")
            .filter_map(|record| record.at)
            .collect();
        (first.len() == 21).then_some(first)
    });
    let first = timeout(PATIENCE, all)
        .await
        .expect("every shoot is looked at");
    let (earliest, latest) = (
        *first.iter().min().expect("some"),
        *first.iter().max().expect("some"),
    );
    assert!(
        latest - earliest >= Duration::from_secs(1),
        "{:?}",
        latest - earliest
    );
    assert!(
        latest - begin < Duration::from_secs(5),
        "{:?}",
        latest - begin
    );
    world.end().await;
}
