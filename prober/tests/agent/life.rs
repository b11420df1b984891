//! A probe's life as its Cluster changes.

use std::time::Duration;

use api_server::Fault;
use serde_json::{Value, json};
use testbed::gardener;
use testbed::memory::{LeaseRenewer, MemoryShootPlan};
use tokio::time::sleep;

use super::log;
use super::world::{CONFIG, KCM, MCM, NAMESPACE, ProberWorld, at, held, writes_to};

/// Fails unless the shoot is left alone for three probes; an answer under way may still arrive.
async fn is_left_alone(world: &ProberWorld) {
    sleep(Duration::from_secs(1)).await;
    let asked = world.shoot.requests().total();
    sleep(Duration::from_secs(3)).await;
    assert_eq!(world.shoot.requests().total(), asked);
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_leaves_is_left_alone_and_what_it_held_down_stays() {
    // D-49
    for change in [
        json!({"spec": {"hibernation": {"enabled": true}}}),
        json!({"metadata": {"deletionTimestamp": "2022-05-05T08:34:05Z"}}),
        json!({"status": {"lastOperation": {"type": "Migrate", "state": ""}}}),
        json!({"spec": {"seedName": "target"}, "status": {"seedName": "target"}}),
        json!({"spec": {"provider": {"workers": []}}}),
        Value::Null,
    ] {
        let world = ProberWorld::running().await;
        world.outage().await;
        match change {
            Value::Null => world.delete_cluster(),
            shoot => world.change_cluster(json!({ "shoot": shoot })),
        }
        world.nodes.heal_all();
        is_left_alone(&world).await;
        world.until_held().await;
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_removed_probe_writes_no_more_than_what_is_in_flight() {
    // D-14
    let delayed = "scaleUp: {level: 1, initialDelay: 1s}";
    let config = CONFIG.replace("scaleUp: {level: 1}", delayed);
    let world = ProberWorld::running_with(&config).await;
    world.hold_down(KCM, "1");
    world.hold_down(MCM, "1");
    world.writes(1).await;
    world.delete_cluster();
    is_left_alone(&world).await;
    assert_eq!(world.written(), [KCM]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_prober_that_is_asked_to_stop_in_mid_flow_stops_at_once_and_the_next_one_goes_on() {
    let delayed = "scaleDown: {level: 1, initialDelay: 25s}";
    let config = CONFIG.replace("scaleDown: {level: 1}", delayed);
    let mut world = ProberWorld::running_with(&config).await;
    world.nodes.cut_all();
    world.until([at(1), held("1"), held("1")]).await;
    world.stop().await;
    let asked = world.seed.requests().total();
    world.nodes.heal_all();
    is_left_alone(&world).await;
    assert_eq!(world.seed.requests().total(), asked, "nothing is left");
    world.start(CONFIG);
    world.until_up().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_under_way_at_the_end_is_awaited_and_told() {
    let mut world = ProberWorld::running().await;
    let slow = Fault::Delay(Duration::from_millis(500));
    let slow = world.fails(writes_to(MCM), slow);
    world.nodes.cut_all();
    world.met(slow, 1).await;
    world.stop().await;
    world.until_it_is(MCM, held("1")).await;
    world.event("ScaledDown", MCM).await;
    // One that is not answered holds up nothing.
    world.seed.faults().clear();
    let hangs = world.fails(writes_to(MCM), Fault::Stall);
    world.nodes.heal_all();
    world.start(CONFIG);
    world.met(hangs, 1).await;
    world.stop().await;
    assert!(log::lines().contains("a write has had no answer until the end"));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_grace_that_changes_is_applied_by_the_running_probe() {
    // D-10
    let world = ProberWorld::running().await;
    world.set_grace("5m");
    world.probes(1).await;
    world.nodes.cut_all();
    world.probes(8).await;
    assert_eq!(world.seed.requests().writes(), 0);
    world.set_grace("4s");
    world.until_held().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_grace_as_short_as_a_renewal_is_named_and_takes_no_healthy_shoot_down() {
    // D-79: as 10 s and kubelets' 10 s, three times as fast.
    let plan = MemoryShootPlan {
        renewer: LeaseRenewer {
            beat: Duration::from_secs(3),
            lease_seconds: 12,
        },
        grace: Some("3s"),
        ..MemoryShootPlan::default()
    };
    let world = ProberWorld::of(plan).await.started(CONFIG).await;
    world.event("GraceTooShort", "(3s)").await;
    world.probes(20).await;
    assert_eq!(world.written(), [""; 0]);
    world.outage().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_cannot_be_understood_keeps_its_probe_and_harms_no_other() {
    // D-13
    let world = ProberWorld::running().await;
    let broken = [json!({"apiVersion": 8}), json!("text"), Value::Null];
    for (number, broken) in broken.into_iter().enumerate() {
        let mut cluster = gardener::cluster(&format!("shoot--p--broken-{number}"), None);
        cluster["spec"]["shoot"] = broken;
        world.apply(cluster);
    }
    world.change_cluster(json!({"shoot": {"apiVersion": 8}}));
    world.probes(2).await;
    world.outage().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_replaced_is_probed_again() {
    // Fault 62
    let world = ProberWorld::running().await;
    world.delete_cluster();
    world.apply(gardener::cluster(NAMESPACE, Some("4s")));
    world.probes(2).await;
    world.outage().await;
    world.end().await;
}
