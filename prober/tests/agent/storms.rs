//! Much at once, and things that happen in the very middle of others.

use std::time::Duration;

use api_server::{Fault, Record, When};
use serde_json::{Value, json};
use testbed::PATIENCE;
use testbed::gardener::IGNORE;
use tokio::time::{Instant, sleep, timeout};

use super::world::*;

/// At most so many protective writes are in flight at once, by the specification.
const IN_FLIGHT: usize = 32;
/// How long a slow seed takes to answer a write.
const ANSWER: Duration = Duration::from_millis(50);

#[tokio::test(start_paused = true)]
async fn a_prober_asked_to_stop_while_a_shoot_asks_for_time_stops_at_once() {
    // Fault 1: the wait of a 429 can be cancelled.
    let mut world = ProberWorld::running().await;
    let throttled = world.shoot.faults().add(When::any(), Fault::throttle(600));
    let met = timeout(PATIENCE, world.shoot.faults().met(throttled, 1));
    met.await.expect("a throttled probe");
    let begin = Instant::now();
    world.stop().await;
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_operators_word_that_comes_between_decision_and_write_is_heeded() {
    // Fault 45: it is there when the write arrives, and no watch has shown it.
    let world = ProberWorld::running().await;
    world.at_writes_to(MCM, |store| {
        let word = |object: &mut Value| object["metadata"]["annotations"] = json!({IGNORE: "true"});
        let written = store.update(DEPLOYMENTS, NAMESPACE, MCM, word);
        written.expect("a Deployment");
    });
    world.nodes.cut_all();
    world.until([held("1"), at(1), held("1")]).await;
    world.probes(2).await;
    assert_eq!(world.states(), [held("1"), at(1), held("1")]);
    world.end().await;
}

/// When requests arrived, in order.
fn times(all: impl IntoIterator<Item = Record>) -> Vec<Instant> {
    let mut times: Vec<_> = all.into_iter().filter_map(|record| record.at).collect();
    times.sort();
    times
}

#[tokio::test(start_paused = true)]
async fn hundred_shoots_that_fail_at_once_are_held_down_with_a_bounded_number_of_writes_at_once() {
    // Fault 53
    const SHOOTS: usize = 100;
    let mut world = ProberWorld::new().await;
    for number in 1..SHOOTS {
        world.apply_shoot(&format!("shoot--p--s{number}"));
    }
    world.start(&CONFIG.replace("initialDelay: 0s", "initialDelay: 6s"));
    // What a first probe asks for; they are spread over half of the delay.
    let first = world.shoot.requests().wait_for(|all| {
        let first = all.iter().filter(|record| record.path == "/version");
        let first = times(first.cloned());
        (first.len() == SHOOTS).then_some(first)
    });
    let first = timeout(PATIENCE, first).await.expect("all are probed");
    let spread = first[SHOOTS - 1] - first[0];
    assert!((2..4).contains(&spread.as_secs()), "{spread:?}");
    sleep(Duration::from_secs(5)).await;
    // Each write takes a while, so that they pile up.
    world.fails(When::matches(scales), Fault::Delay(ANSWER));
    world.nodes.cut_all();
    world.writes(3 * SHOOTS).await;
    sleep(2 * ANSWER).await;
    let mut all = world.seed.store().list(DEPLOYMENTS, None).into_iter();
    assert!(all.all(|object| object["spec"]["replicas"] == 0));
    let writes = times(world.seed.requests().all().into_iter().filter(scales));
    assert_eq!(writes.len(), 3 * SHOOTS);
    let took = writes[writes.len() - 1] - writes[0];
    assert!(
        took < Duration::from_secs(10),
        "the usual grace leaves 10 s from the verdict to the end: {took:?}"
    );
    // An answer comes no sooner than this: whatever was asked for within that time was in flight
    // together.
    let together = |begin: &Instant| {
        let within = |at: &&Instant| (*begin..*begin + ANSWER).contains(*at);
        writes.iter().filter(within).count()
    };
    let most = writes.iter().map(together).max();
    assert_eq!(most, Some(IN_FLIGHT));
    // What the alert for a whole seed goes by.
    for series in [
        "dwd_held_down_shoots{verdict=\"scale_down\"}",
        "dwd_shoots{state=\"probed\"}",
    ] {
        world.until_metric(series, SHOOTS as f64).await;
    }
    world.end().await;
}
