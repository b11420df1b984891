//! Dependents that go away, or make room for others of the same name, while they are written to
//! (fault 37).

use api_server::{Fault, When};
use serde_json::json;
use testbed::gardener;

use super::world::{CA, KCM, MCM, NAMESPACE, ProberWorld, at, held};

const DEPLOYMENTS: &str = "deployments.apps";

/// At the moment at which the first write to machine-controller-manager arrives, it is deleted;
/// then `successor` is made.
fn replace_at_the_first_write(world: &ProberWorld, successor: Option<i64>) {
    let store = world.seed.store().clone();
    let first =
        store.get(DEPLOYMENTS, NAMESPACE, MCM).expect("it exists")["metadata"]["uid"].clone();
    let replace = When::matches(move |record| {
        let is_there = || {
            store
                .get(DEPLOYMENTS, NAMESPACE, MCM)
                .is_some_and(|object| object["metadata"]["uid"] == first)
        };
        if record.is_write() && record.name == MCM && is_there() {
            store.delete(DEPLOYMENTS, NAMESPACE, MCM).expect("deleted");
            if let Some(replicas) = successor {
                store
                    .create(gardener::deployment(NAMESPACE, MCM, replicas))
                    .expect("created");
            }
        }
        false
    });
    world.seed.faults().add(replace, Fault::Stall);
}

#[tokio::test(start_paused = true)]
async fn a_successor_of_the_same_name_is_remembered_by_its_own_replicas() {
    let world = ProberWorld::running().await;
    replace_at_the_first_write(&world, Some(4));
    world.nodes.cut_all();
    world.until([held("1"), held("4"), held("1")]).await;
    world.nodes.heal_all();
    world.until([at(1), at(4), at(1)]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_successor_does_not_inherit_what_was_remembered_of_the_one_before() {
    let world = ProberWorld::running().await;
    world.change(MCM, |object| object["spec"]["replicas"] = json!(3));
    world.nodes.cut_all();
    world.until([held("1"), held("3"), held("1")]).await;
    world.delete(MCM);
    world.apply(gardener::deployment(NAMESPACE, MCM, 2));
    world.until([held("1"), held("2"), held("1")]).await;
    world.nodes.heal_all();
    world.until([at(1), at(2), at(1)]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_that_goes_away_at_its_write_stops_no_other_and_continues_when_it_is_back() {
    let world = ProberWorld::running().await;
    replace_at_the_first_write(&world, None);
    world.nodes.cut_all();
    world.until_it_is(KCM, held("1")).await;
    world.until_it_is(CA, held("1")).await;
    assert!(
        world
            .seed
            .store()
            .get(DEPLOYMENTS, NAMESPACE, MCM)
            .is_none(),
        "nobody makes another"
    );
    world.apply(gardener::deployment(NAMESPACE, MCM, 2));
    world.until([held("1"), held("2"), held("1")]).await;
    world.nodes.heal_all();
    world.until([at(1), at(2), at(1)]).await;
    world.end().await;
}
