//! A seed that answers badly.

use std::time::Duration;

use api_server::{Fault, Network, When};
use serde_json::json;
use testbed::PATIENCE;
use tokio::time::{Instant, timeout};

use super::world::*;

#[tokio::test(start_paused = true)]
async fn a_write_meets_what_others_wrote_in_between() {
    // The view has not seen the other's write yet: the API server itself refuses ours.
    let world = ProberWorld::running().await;
    world.at_writes_to(MCM, |store| {
        let write = |object: &mut serde_json::Value| {
            if object["spec"]["replicas"] == 1 {
                object["spec"]["replicas"] = json!(4);
            }
        };
        store
            .update(DEPLOYMENTS, NAMESPACE, MCM, write)
            .expect("written");
    });
    world.nodes.cut_all();
    world.until([held("1"), held("4"), held("1")]).await;
    let refused = |record: &api_server::Record| record.status == Some(409);
    assert_eq!(world.seed.requests().count(refused), 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_tried_three_times_and_again_with_the_next_probe() {
    // Neither siblings nor later levels wait for it. The first ones end with the dependent's
    // timeout; of the last one kube-controller-manager's grace does not wait for the Retry-After
    // (fault 2).
    for (fault, times, timeout) in [
        (Fault::Stall, 2, ", timeout: 300ms"),
        // Fault 40: it was applied, and nobody answered.
        (Fault::StallAfter, 1, ", timeout: 300ms"),
        (Fault::CloseAfter, 1, ""),
        (Fault::status(500), 3, ""),
        (Fault::throttle(600), 1, ""),
    ] {
        let down = format!("scaleDown: {{level: 0{timeout}}}");
        let world =
            ProberWorld::running_with(&CONFIG.replace("scaleDown: {level: 0}", &down)).await;
        world.scale(MCM, 2);
        let failed = world.fails(writes_to(MCM).times(times), fault.clone());
        world.nodes.cut_all();
        world.met(failed, 1).await;
        let met = Instant::now();
        world.until([held("1"), held("2"), held("1")]).await;
        assert!(met.elapsed() < Duration::from_secs(4), "{fault:?}");
        world.event("ScaledDown", MCM).await;
        world.probes(2).await;
        assert_eq!(world.states(), [held("1"), held("2"), held("1")]);
        assert_eq!(world.seed.faults().hits(failed), times, "{fault:?}");
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_says_why_a_write_was_refused() {
    let mut world = ProberWorld::running().await;
    let reason = "admission webhook \"freeze.example.org\" denied the request:\n  no scaling during the freeze";
    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": reason });
    let refusal = Fault::Answer {
        code: 403,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: status.to_string().into(),
    };
    world.fails(writes_to(MCM).times(3), refusal);
    world.nodes.cut_all();
    let expected = "Cannot be scaled down: access is denied (403): admission webhook \"freeze.example.org\" denied the request: no scaling during the freeze";
    world.event("ScalingFailed", expected).await;
    world.until_held().await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_machines_nothing_is_concluded() {
    // D-27: never known is not "no machines".
    let mut world = ProberWorld::new().await;
    world.fails(When::verb("list", MACHINES), Fault::status(500));
    world.scale(CA, 0);
    world.start(CONFIG);
    world.nodes.cut_all();
    world.probes(8).await;
    assert_eq!(world.seed.requests().writes(), 0);
    world.seed.faults().clear();
    world.until([held("1"), held("1"), at(0)]).await;
    // Nor are dependents that cannot be listed none: what cannot be held down is reported.
    world.stop().await;
    world.nodes.heal_all();
    world.fails(When::verb("list", DEPLOYMENTS), Fault::status(500));
    let world = world.started(CONFIG).await;
    world.nodes.cut_all();
    world.event("ScalingFailed", KCM).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_seed_that_cannot_be_reached_at_the_start_is_tried_until_it_can() {
    let mut world = ProberWorld::new().await;
    world.seed.set_network(Network::Refused);
    world.start(CONFIG);
    let asked = timeout(PATIENCE / 9, world.probes(1)).await;
    asked.expect_err("no probe yet");
    world.seed.set_network(Network::Up);
    world.probes(2).await;
    world.end().await;
}
