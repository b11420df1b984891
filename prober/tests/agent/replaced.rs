//! Dependents that make room for others of the same name (fault 37).

use testbed::gardener;

use super::world::{MCM, NAMESPACE, ProberWorld, at, held};

#[tokio::test(start_paused = true)]
async fn a_successor_does_not_inherit_what_was_remembered_of_the_one_before() {
    let world = ProberWorld::running().await;
    world.scale(MCM, 3);
    world.nodes.cut_all();
    world.until([held("1"), held("3"), held("1")]).await;
    world.delete(MCM);
    world.apply(gardener::deployment(NAMESPACE, MCM, 2));
    world.until([held("1"), held("2"), held("1")]).await;
    world.nodes.heal_all();
    world.until([at(1), at(2), at(1)]).await;
    world.end().await;
}
