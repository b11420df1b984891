//! What a restore waits for.

use std::time::Duration;

use api_server::Fault;
use tokio::time::Instant;

use super::world::{CONFIG, KCM, MCM, ProberWorld, at, held, writes_to};

#[tokio::test(start_paused = true)]
async fn a_dependent_that_may_not_be_written_delays_them_no_longer_and_is_counted() {
    let config = CONFIG.replace("scaleUp: {level: 1}", "scaleUp: {level: 1, timeout: 3s}");
    let world = ProberWorld::running_with(&config).await;
    world.outage().await;
    let denied = world.fails(writes_to(MCM), Fault::status(500));
    world.nodes.heal_all();
    world.until([at(1), held("1"), at(1)]).await;
    let left = format!("dwd_left_behind_total{{kind=\"Deployment\",name=\"{MCM}\"}}");
    assert_eq!(world.metric(&left).await, Some(1.0));
    world.seed.faults().remove(denied);
    world.until_up().await;
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
    assert!(healthy_since.elapsed() > Duration::from_millis(2900));
    world.until_up().await;
    world.end().await;
}
