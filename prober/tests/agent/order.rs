//! Down and up again, in order.

use std::time::Duration;

use api_server::{Fault, When};
use serde_json::json;
use tokio::time::Instant;

use super::operations::Served;
use super::world::{CA, CONFIG, KCM, MCM, NAMESPACE, ProberWorld, at, held};

#[tokio::test(start_paused = true)]
async fn an_outage_takes_all_down_and_its_end_brings_all_back() {
    let world = ProberWorld::running().await;
    world.change(MCM, |object| object["spec"]["replicas"] = json!(2));
    world.nodes.cut_all();
    world.until([held("1"), held("2"), held("1")]).await;
    let mut down = world.written();
    down[..2].sort();
    assert_eq!(down, [CA, MCM, KCM]);
    world.nodes.heal_all();
    world.until([at(1), at(2), at(1)]).await;
    assert_eq!(world.written()[3..], [KCM, MCM, CA]);
    world.end().await;
}

#[tokio::test]
async fn a_dependent_that_may_not_be_written_delays_them_no_longer_and_is_counted() {
    let config = CONFIG.replace("scaleUp: {level: 1}", "scaleUp: {level: 1, timeout: 3s}");
    let served = Served::serve_with(ProberWorld::new().await, &config, &[]).await;
    let world = &served.world;
    world.probes(3).await;
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    let writes_to_mcm = When::matches(|record| record.is_write() && record.name == MCM);
    let denied = world.seed.faults().add(writes_to_mcm, Fault::status(500));
    world.nodes.heal_all();
    world.until([at(1), held("1"), at(1)]).await;
    let left = format!("dwd_left_behind_total{{kind=\"Deployment\",name=\"{MCM}\"}}");
    assert_eq!(served.metric(&left).await, 1.0);
    world.seed.faults().remove(denied);
    world.until([at(1), at(1), at(1)]).await;
    served.world.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_candidate_brings_back_what_is_held_down_and_nothing_else() {
    // D-20
    let mut world = ProberWorld::new().await;
    for node in &world.nodes.names()[1..] {
        world
            .seed
            .store()
            .delete("machines.machine.sapcloud.io", NAMESPACE, node)
            .expect("deleted");
    }
    world.hold_down(MCM, "3");
    world.change(KCM, |object| object["spec"]["replicas"] = json!(0));
    world.start(CONFIG);
    world.until([at(0), at(3), at(1)]).await;
    world.probes(3).await;
    world.nodes.cut_all();
    world.probes(6).await;
    assert_eq!(
        [KCM, MCM, CA].map(|name| world.dependent(name)),
        [at(0), at(3), at(1)],
        "one candidate never scales down"
    );
    assert_eq!(world.written(), [MCM]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn recovery_must_last_where_the_config_says_so() {
    // D-22
    let mut world = ProberWorld::new().await;
    world.hold_down(KCM, "1");
    world.start(&format!("{CONFIG}scaleUpStabilization: 3s\n"));
    world.probes(1).await;
    let healthy_since = Instant::now();
    world.writes(1).await;
    // The first probe was answered shortly before it was noticed here.
    assert!(
        healthy_since.elapsed() > Duration::from_millis(2500),
        "{:?}",
        healthy_since.elapsed()
    );
    world.until([at(1), at(1), at(1)]).await;
    world.end().await;
}
