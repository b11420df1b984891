//! Much at once, and things that happen in the very middle of others.

use std::time::Duration;

use api_server::{Fault, When};
use serde_json::json;
use testbed::PATIENCE;
use testbed::gardener;
use tokio::time::{Instant, timeout};

use super::log::SHOOT_TOKEN;
use super::operations::Served;
use super::world::{CA, KCM, MCM, NAMESPACE, ProberWorld, at, held, scales};

/// At most so many protective writes are in flight at once, by the specification.
const IN_FLIGHT: usize = 32;
/// How long a slow seed takes to answer a write.
const ANSWER: Duration = Duration::from_millis(50);

#[tokio::test(start_paused = true)]
async fn a_prober_asked_to_stop_while_a_shoot_asks_for_time_stops_at_once() {
    // Fault 1: the wait of a 429 can be cancelled.
    let mut world = ProberWorld::running().await;
    let id = world.shoot.faults().add(When::any(), Fault::throttle(600));
    timeout(PATIENCE, world.shoot.faults().met(id, 1))
        .await
        .expect("a throttled probe");
    let begin = Instant::now();
    world.stop().await;
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn an_operators_word_that_comes_between_decision_and_write_is_heeded() {
    // Fault 45: it is there when the write arrives, and no watch has shown it.
    let world = ProberWorld::running().await;
    let store = world.seed.store().clone();
    let word = When::matches(move |record| {
        if record.is_write() && record.name == MCM {
            let ignore = json!({"dependency-watchdog.gardener.cloud/ignore-scaling": "true"});
            let add =
                |object: &mut serde_json::Value| object["metadata"]["annotations"] = ignore.clone();
            store
                .update("deployments.apps", NAMESPACE, MCM, add)
                .expect("written");
        }
        false
    });
    world.seed.faults().add(word.once(), Fault::Stall);
    world.nodes.cut_all();
    world.until([held("1"), at(1), held("1")]).await;
    world.probes(2).await;
    assert_eq!(
        [KCM, MCM, CA].map(|name| world.dependent(name)),
        [held("1"), at(1), held("1")]
    );
    world.end().await;
}

#[tokio::test]
async fn hundred_shoots_that_fail_at_once_are_held_down_with_a_bounded_number_of_writes_at_once() {
    // Fault 53. They share one API server here, which changes nothing for the seed.
    const SHOOTS: usize = 100;
    let world = ProberWorld::new().await;
    let namespace = |number: usize| format!("shoot--p--s{number}");
    for number in 0..SHOOTS {
        for node in world.nodes.names() {
            world.apply(gardener::machine(&namespace(number), node));
        }
        for name in [KCM, MCM, CA] {
            world.apply(gardener::deployment(&namespace(number), name, 1));
        }
        world.apply(gardener::probe_secret(
            &namespace(number),
            &world.shoot.kubeconfig(SHOOT_TOKEN),
        ));
        world.apply(gardener::cluster(&namespace(number), Some("4s")));
    }
    // Each write takes a while, so that they pile up.
    world
        .seed
        .faults()
        .add(When::matches(scales), Fault::Delay(ANSWER));
    let served = Served::serve(world, &[]).await;
    let world = &served.world;
    world.probes(3 * SHOOTS).await;
    world.nodes.cut_all();
    let all = |store: &api_server::Store| {
        let down = |name: &str, number: usize| {
            let found = store.get("deployments.apps", &namespace(number), name);
            found.is_some_and(|object| object["spec"]["replicas"] == 0)
        };
        (0..SHOOTS)
            .all(|number| [KCM, MCM, CA].iter().all(|name| down(name, number)))
            .then_some(())
    };
    timeout(PATIENCE, world.seed.store().wait_for(all))
        .await
        .expect("all are held down");
    let writes = world
        .seed
        .requests()
        .all()
        .into_iter()
        .filter(scales)
        .filter_map(|write| write.at);
    let mut writes: Vec<Instant> = writes.collect();
    writes.sort();
    let took = writes[writes.len() - 1] - writes[0];
    assert!(
        took < Duration::from_secs(10),
        "the usual grace leaves 10 s from the verdict to the end: {took:?}"
    );
    // An answer comes no sooner than this: whatever was asked for within that time was in flight
    // together.
    let together = |begin: &Instant| {
        writes
            .iter()
            .filter(|&&at| at >= *begin && at - *begin < ANSWER)
            .count()
    };
    let most = writes.iter().map(together).max().unwrap_or_default();
    assert!((2..=IN_FLIGHT).contains(&most), "{most} writes at once");
    // What the alert for a whole seed goes by, the shoot of every world included.
    let shoots = SHOOTS as f64 + 1.0;
    served
        .until_metric("dwd_held_down_shoots{verdict=\"scale_down\"}", |down| {
            down == shoots
        })
        .await;
    assert_eq!(served.metric("dwd_shoots{state=\"probed\"}").await, shoots);
    served.world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_conflict_that_may_not_be_looked_into_is_left_to_the_next_probe() {
    // Without the right to get a Deployment.
    let mut world = ProberWorld::running().await;
    let gets = world
        .seed
        .faults()
        .add(When::verb("get", "deployments.apps"), Fault::status(403));
    world.seed.faults().add(
        When::matches(|record| record.is_write() && record.name == MCM).once(),
        Fault::status(409),
    );
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    assert!(world.seed.faults().hits(gets) > 0, "it wanted to look");
    world.stop().await;
}
