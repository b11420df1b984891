//! Dependents whose replicas are read by their scale subresource.

use api_server::{Fault, Resource, Rule, When};
use serde_json::json;
use testbed::PATIENCE;
use testbed::gardener;

use super::log::SEED_TOKEN;
use super::world::{CONFIG, KCM, MCM, NAMESPACE, ProberWorld, held};

const SCALERS: &str = "scalers.bed.example.org";
const SCALER: &str = "ref: {kind: Scaler, name: scaler, apiVersion: bed.example.org/v1}";
/// In the order of lists it comes before the shoot.
const OTHER: &str = "shoot--p--a";

/// A world in which the shoot and another one have a Scaler that the config names too.
async fn world() -> (ProberWorld, String) {
    let world = ProberWorld::new().await;
    let scalers = Resource::custom("bed.example.org/v1", "scalers", "Scaler").with_status();
    world.seed.store().register(scalers.with_scale());
    let mut user = gardener::seed_prober();
    let more = Rule::new(
        "get,list,watch,update,patch",
        &format!("{SCALERS},{SCALERS}/scale"),
    );
    user.rules.get_or_insert_default().push(more);
    world.seed.access().grant(SEED_TOKEN, user);
    for namespace in [OTHER, NAMESPACE] {
        world.apply(json!({"apiVersion": "bed.example.org/v1", "kind": "Scaler",
            "metadata": {"name": "scaler", "namespace": namespace}, "spec": {"replicas": 4}}));
    }
    let config =
        format!("{CONFIG}- {SCALER}\n  scaleUp: {{level: 3}}\n  scaleDown: {{level: 0}}\n");
    (world, config)
}

/// Reads of the scale in a namespace.
fn reads(namespace: &'static str) -> When {
    When::matches(move |record| {
        record.verb == "get"
            && record
                .path
                .ends_with(&format!("/{namespace}/scalers/scaler/scale"))
    })
}

/// Waits until the shoot's scaler is at 0.
async fn goes_down(world: &ProberWorld) {
    let down = world.seed.store().wait_for(|store| {
        (store.get(SCALERS, NAMESPACE, "scaler")?["spec"]["replicas"] == 0).then_some(())
    });
    tokio::time::timeout(PATIENCE, down)
        .await
        .expect("the scaler is known and goes down");
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_cannot_be_read_holds_up_no_other_shoot() {
    let (mut world, config) = world().await;
    let stalled = world.seed.faults().add(reads(OTHER), Fault::Stall);
    world.start(&config);
    world.seed.faults().met(stalled, 1).await;
    world.probes(3).await;
    world.nodes.cut_all();
    goes_down(&world).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_scale_that_cannot_be_read_is_read_again_until_it_can_although_nothing_changes() {
    let (mut world, config) = world().await;
    let refused = world
        .seed
        .faults()
        .add(reads(NAMESPACE), Fault::status(500));
    world.start(&config);
    world.seed.faults().met(refused, 5).await;
    world.probes(3).await;
    world.nodes.cut_all();
    for name in [KCM, MCM] {
        world.until_it_is(name, held("1")).await;
    }
    let scaler = || {
        world
            .seed
            .store()
            .get(SCALERS, NAMESPACE, "scaler")
            .expect("it exists")
    };
    assert_eq!(
        scaler()["spec"]["replicas"],
        4,
        "nobody knows what to remember of it"
    );
    world.seed.faults().remove(refused);
    goes_down(&world).await;
    assert_eq!(scaler()["metadata"]["annotations"][gardener::REPLICAS], "4");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_reading_of_a_scale_ends_when_its_object_goes() {
    let (mut world, config) = world().await;
    let refused = world.seed.faults().add(reads(OTHER), Fault::status(500));
    world.start(&config);
    world.seed.faults().met(refused, 2).await;
    world
        .seed
        .store()
        .delete(SCALERS, OTHER, "scaler")
        .expect("deleted");
    world.apply(json!({"apiVersion": "bed.example.org/v1", "kind": "Scaler",
        "metadata": {"name": "scaler", "namespace": "shoot--p--b"}, "spec": {"replicas": 1}}));
    // The watch tells of the deletion before it tells of what was made after it.
    let made = world.seed.requests().wait_for(|all| {
        all.iter()
            .any(|record| record.path.contains("/shoot--p--b/"))
            .then_some(())
    });
    tokio::time::timeout(PATIENCE, made)
        .await
        .expect("the other is read");
    let before = world.seed.faults().hits(refused);
    // Several tries would fall into the time of so many probes.
    world.probes(12).await;
    assert!(
        world.seed.faults().hits(refused) <= before + 1,
        "it is still read"
    );
    world.end().await;
}
