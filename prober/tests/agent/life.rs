//! A probe's life as its Cluster changes.

use std::time::Duration;

use api_server::{Fault, When};
use serde_json::json;
use testbed::memory::{LeaseRenewer, MemoryShootPlan};
use testbed::{PATIENCE, gardener};
use tokio::time::{Instant, timeout, timeout_at};

use super::log;
use super::world::{CA, CONFIG, KCM, MCM, NAMESPACE, ProberWorld, at, held, scales};

/// What passes before the absence of something is believed: three probes at the interval of these
/// tests.
const QUIET: Duration = Duration::from_secs(3);

/// Whether the shoot is left alone for a while; an answer under way when this begins may still
/// arrive.
async fn is_left_alone(world: &ProberWorld) -> bool {
    let settled = Instant::now() + Duration::from_secs(1);
    let late = |record: &api_server::Record| record.at.is_some_and(|at| at > settled);
    let more = world
        .shoot
        .requests()
        .wait_for(|all| all.iter().any(late).then_some(()));
    timeout_at(settled + QUIET, more).await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_leaves_is_left_alone_and_what_it_held_down_stays() {
    // D-49
    let changes = [
        json!({"spec": {"hibernation": {"enabled": true}}}),
        json!({"metadata": {"deletionTimestamp": "2022-05-05T08:34:05Z"}}),
        json!({"status": {"lastOperation": {"type": "Migrate", "state": ""}}}),
        json!({"spec": {"seedName": "target"}, "status": {"seedName": "target"}}),
        json!({"spec": {"provider": {"workers": []}}}),
        json!(null),
    ];
    futures::future::join_all(changes.map(async |change| {
        let world = ProberWorld::running().await;
        world.nodes.cut_all();
        world.until([held("1"), held("1"), held("1")]).await;
        if change.is_null() {
            world.delete_cluster();
        } else {
            let cluster =
                json!({"spec": {"seed": {"metadata": {"name": "source"}}, "shoot": change}});
            world
                .seed
                .store()
                .patch(
                    "clusters.extensions.gardener.cloud",
                    "",
                    NAMESPACE,
                    &cluster,
                )
                .expect("changed");
        }
        world.nodes.heal_all();
        assert!(is_left_alone(&world).await, "{change}");
        assert_eq!(
            [KCM, MCM, CA].map(|name| world.dependent(name)),
            [held("1"), held("1"), held("1")],
            "{change}"
        );
        world.end().await;
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_probe_writes_no_more_than_what_is_in_flight() {
    // D-14
    let config = CONFIG.replace(
        "scaleUp: {level: 1}",
        "scaleUp: {level: 1, initialDelay: 1s}",
    );
    let world = ProberWorld::running_with(&config).await;
    world.hold_down(KCM, "1");
    world.hold_down(MCM, "1");
    world.writes(1).await;
    world.delete_cluster();
    assert!(is_left_alone(&world).await);
    assert_eq!(world.written(), [KCM]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_prober_that_is_asked_to_stop_in_mid_flow_stops_at_once_and_the_next_one_goes_on() {
    let config = CONFIG.replace(
        "scaleDown: {level: 1}",
        "scaleDown: {level: 1, initialDelay: 25s}",
    );
    let mut world = ProberWorld::running_with(&config).await;
    world.nodes.cut_all();
    world.until([at(1), held("1"), held("1")]).await;
    world.stop().await;
    let (seed, shoot) = (
        world.seed.requests().total(),
        world.shoot.requests().total(),
    );
    world.nodes.heal_all();
    assert!(is_left_alone(&world).await);
    assert_eq!(
        (
            world.seed.requests().total(),
            world.shoot.requests().total()
        ),
        (seed, shoot),
        "nothing is left behind"
    );
    world.start(CONFIG);
    world.until([at(1), at(1), at(1)]).await;
    world.end().await;
}

#[tokio::test]
async fn a_write_that_is_under_way_at_the_end_is_awaited_and_told() {
    log::listen();
    let mut world = ProberWorld::running().await;
    let of_machines = When::matches(|record| scales(record) && record.name == MCM);
    let slow = world
        .seed
        .faults()
        .add(of_machines, Fault::Delay(Duration::from_millis(500)));
    world.nodes.cut_all();
    let met = world.seed.faults().met(slow, 1);
    timeout(PATIENCE, met).await.expect("a write");
    world.stop().await;
    assert_eq!(world.dependent(MCM), held("1"));
    world.event("ScaledDown", MCM).await;
    // One that is not answered holds up nothing.
    world.seed.faults().clear();
    let hangs = When::matches(|record| scales(record) && record.name == MCM);
    let hangs = world.seed.faults().add(hangs, Fault::Stall);
    world.nodes.heal_all();
    world.start(CONFIG);
    let met = world.seed.faults().met(hangs, 1);
    timeout(PATIENCE, met).await.expect("a write");
    world.stop().await;
    assert!(log::lines().contains("a write has had no answer until the end"));
    world.seed.faults().clear();
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_grace_that_changes_is_applied_by_the_running_probe() {
    // D-10
    let world = ProberWorld::running().await;
    world.change_shoot(|shoot| {
        shoot["spec"]["kubernetes"]["kubeControllerManager"]["nodeMonitorGracePeriod"] = json!("5m")
    });
    world.probes(1).await;
    world.nodes.cut_all();
    world.probes(8).await;
    assert_eq!(world.seed.requests().writes(), 0);
    world.change_shoot(|shoot| {
        shoot["spec"]["kubernetes"]["kubeControllerManager"]["nodeMonitorGracePeriod"] = json!("4s")
    });
    world.until([held("1"), held("1"), held("1")]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_grace_as_short_as_a_renewal_is_named_and_takes_no_healthy_shoot_down() {
    // D-79: as 10 s and kubelets' 10 s, three times as fast.
    let beat = Duration::from_secs(3);
    let mut world = ProberWorld::of(MemoryShootPlan {
        renewer: LeaseRenewer {
            beat,
            lease_seconds: 12,
        },
        grace: Some("3s"),
        ..MemoryShootPlan::default()
    })
    .await;
    world.start(CONFIG);
    world.event("GraceTooShort", "(3s)").await;
    world.probes(20).await;
    assert_eq!(world.written(), [""; 0]);
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shoot_that_cannot_be_understood_keeps_its_probe_and_harms_no_other() {
    // D-13
    let world = ProberWorld::running().await;
    for (number, broken) in [json!({"apiVersion": 8}), json!("text"), json!(null)]
        .into_iter()
        .enumerate()
    {
        let mut cluster = gardener::cluster(&format!("shoot--p--broken-{number}"), None);
        cluster["spec"]["shoot"] = broken;
        world.apply(cluster);
    }
    world.change_shoot(|shoot| *shoot = json!({"apiVersion": 8}));
    world.probes(2).await;
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_replaced_is_probed_again() {
    // Fault 62
    let world = ProberWorld::running().await;
    world.delete_cluster();
    world.apply(gardener::cluster(NAMESPACE, Some("4s")));
    world.probes(2).await;
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shoot_is_probed_once_its_control_plane_is_made() {
    let mut world = ProberWorld::new().await;
    world.change_shoot(|shoot| {
        shoot["status"]["lastOperation"] = json!({"type": "Restore", "state": "Processing"})
    });
    world.start(CONFIG);
    assert!(is_left_alone(&world).await);
    world.change_shoot(|shoot| shoot["status"]["lastOperation"]["state"] = json!("Succeeded"));
    world.probes(2).await;
    world.end().await;
}

/// Gardener begins to move the control plane from one seed to another, which stays at work
/// meanwhile; this Cluster is on `seed`.
fn migrate_live(world: &ProberWorld, seed: &str) {
    let shoot = json!({
        "spec": {"seedName": "target"},
        "status": {"seedName": "source", "lastOperation": {"type": "LiveMigrate", "state": "Processing", "progress": 10}},
    });
    change_cluster(
        world,
        json!({"spec": {"seed": {"metadata": {"name": seed}}, "shoot": shoot}}),
    );
}

/// From now on the target is responsible.
fn hand_over(world: &ProberWorld) {
    change_cluster(
        world,
        json!({"spec": {"shoot": {"status": {"seedName": "target"}}}}),
    );
}

fn change_cluster(world: &ProberWorld, patch: serde_json::Value) {
    world
        .seed
        .store()
        .patch("clusters.extensions.gardener.cloud", "", NAMESPACE, &patch)
        .expect("changed");
}

#[tokio::test(start_paused = true)]
async fn the_source_of_a_live_migration_protects_until_it_hands_over() {
    let mut world = ProberWorld::running().await;
    migrate_live(&world, "source");
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    world.stop().await;
    world.start(CONFIG);
    world.nodes.heal_all();
    world.until([at(1), at(1), at(1)]).await;
    hand_over(&world);
    world.nodes.cut_all();
    assert!(is_left_alone(&world).await);
    assert_eq!(
        [KCM, MCM, CA].map(|name| world.dependent(name)),
        [at(1), at(1), at(1)]
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_target_of_a_live_migration_waits_until_it_is_handed_over() {
    let mut world = ProberWorld::new().await;
    migrate_live(&world, "target");
    world.hold_down(KCM, "2");
    world.start(CONFIG);
    assert!(is_left_alone(&world).await);
    assert_eq!(world.written(), Vec::<String>::new());
    hand_over(&world);
    world.until([at(2), at(1), at(1)]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_machines_only_nodes_that_renew_bring_back_what_is_held_down() {
    // D-55, D-59
    let mut world = ProberWorld::running().await;
    migrate_live(&world, "source");
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    for node in world.nodes.names() {
        world
            .seed
            .store()
            .delete("machines.machine.sapcloud.io", NAMESPACE, node)
            .expect("deleted");
    }
    world.probes(6).await;
    world.stop().await;
    world.start(CONFIG);
    world.probes(6).await;
    assert_eq!(
        [KCM, MCM, CA].map(|name| world.dependent(name)),
        [held("1"), held("1"), held("1")]
    );
    world.nodes.heal_all();
    world.until([at(1), at(1), at(1)]).await;
    world.end().await;
}
