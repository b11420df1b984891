//! A seed that answers badly while it is written to.

use std::time::Duration;

use api_server::{Fault, When};
use serde_json::json;
use testbed::PATIENCE;
use tokio::time::Instant;

use super::world::{CA, CONFIG, KCM, MCM, NAMESPACE, ProberWorld, at, held, scales};

/// Writes to one dependent.
fn writes_to(name: &'static str) -> When {
    When::matches(move |record| record.is_write() && record.name == name)
}

#[tokio::test(start_paused = true)]
async fn a_write_meets_what_others_wrote_in_between() {
    // The view has not seen the other's write yet: the API server itself refuses ours.
    let world = ProberWorld::running().await;
    let store = world.seed.store().clone();
    let other = When::matches(move |record| {
        if record.is_write() && record.name == MCM {
            let seen = store
                .get("deployments.apps", NAMESPACE, MCM)
                .expect("it exists");
            if seen["spec"]["replicas"] == 1 {
                store
                    .update("deployments.apps", NAMESPACE, MCM, |object| {
                        object["spec"]["replicas"] = json!(4)
                    })
                    .expect("written");
            }
        }
        false
    });
    world.seed.faults().add(other, Fault::Stall);
    world.nodes.cut_all();
    world.until([held("1"), held("4"), held("1")]).await;
    assert_eq!(
        world
            .seed
            .requests()
            .count(|record| record.status == Some(409)),
        1
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_tried_three_times_and_again_with_the_next_probe() {
    // What fails stops neither siblings nor later levels.
    let world = ProberWorld::running().await;
    let id = world
        .seed
        .faults()
        .add(writes_to(MCM).times(3), Fault::status(500));
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    assert_eq!(world.seed.faults().hits(id), 3);
    let written = world.written();
    assert_eq!(written.iter().filter(|name| *name == MCM).count(), 4);
    assert_ne!(
        written.last().map(String::as_str),
        Some(KCM),
        "the later level did not wait for it: {written:?}"
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_not_done_twice() {
    // Fault 40: it was applied, and nobody answered.
    for fault in [Fault::CloseAfter, Fault::StallAfter] {
        let config = CONFIG.replace(
            "scaleDown: {level: 0}",
            "scaleDown: {level: 0, timeout: 500ms}",
        );
        let world = ProberWorld::running_with(&config).await;
        world.change(MCM, |object| object["spec"]["replicas"] = json!(2));
        world.seed.faults().add(writes_to(MCM).once(), fault);
        world.nodes.cut_all();
        world.until([held("1"), held("2"), held("1")]).await;
        world.probes(2).await;
        assert_eq!(world.dependent(MCM), held("2"));
        world.event("ScaledDown", MCM).await;
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn dependents_that_cannot_be_listed_are_reported_in_an_outage_and_held_down_as_soon_as_they_can()
 {
    let mut world = ProberWorld::new().await;
    let unlisted = world
        .seed
        .faults()
        .add(When::verb("list", "deployments.apps"), Fault::status(500));
    world.start(CONFIG);
    world.probes(3).await;
    world.nodes.cut_all();
    world.event("ScalingFailed", KCM).await;
    world.seed.faults().remove(unlisted);
    world.until([held("1"), held("1"), held("1")]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_hangs_ends_with_the_dependents_timeout() {
    let config = CONFIG.replace(
        "scaleDown: {level: 0}",
        "scaleDown: {level: 0, timeout: 300ms}",
    );
    let world = ProberWorld::running_with(&config).await;
    world
        .seed
        .faults()
        .add(writes_to(MCM).times(2), Fault::Stall);
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn protection_waits_little_for_connections_that_the_network_has_forgotten() {
    // Far less than the dependents' timeout of 30 s: the nodes do not wait for it either.
    let world = ProberWorld::running().await;
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    world.nodes.heal_all();
    world.until([at(1), at(1), at(1)]).await;
    let kept = world.seed.connections().accepted;
    let lost = When::matches(move |record| scales(record) && record.connection <= kept);
    let lost = world.seed.faults().add(lost, Fault::Stall);
    let began = Instant::now();
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    assert!(world.seed.faults().hits(lost) > 0, "one was used");
    assert!(
        began.elapsed() < Duration::from_secs(25),
        "{:?}",
        began.elapsed()
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_seed_that_asks_for_time_does_not_get_all_of_it_from_protection() {
    // Fault 2: kube-controller-manager's grace does not wait for Retry-After.
    let world = ProberWorld::running().await;
    world
        .seed
        .faults()
        .add(writes_to(MCM).once(), Fault::throttle(600));
    world.nodes.cut_all();
    world.until([held("1"), held("1"), held("1")]).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_says_why_a_write_was_refused() {
    let mut world = ProberWorld::running().await;
    let reason = "admission webhook \"freeze.example.org\" denied the request:\n  no scaling during the freeze";
    let status = json!({ "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": reason });
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let refusal = Fault::Answer {
        code: 403,
        headers,
        body: status.to_string().into(),
    };
    world.seed.faults().add(writes_to(MCM).times(3), refusal);
    world.nodes.cut_all();
    let event = world.seed.store().wait_for(|store| {
        let events = store.list("events", Some("garden"));
        events
            .into_iter()
            .find(|event| event["reason"] == "ScalingFailed")
            .map(|event| event["message"].clone())
    });
    let event = tokio::time::timeout(PATIENCE, event)
        .await
        .expect("an Event");
    let expected = "Cannot be scaled down: access is denied (403): admission webhook \"freeze.example.org\" denied the request: no scaling during the freeze";
    assert!(
        event
            .as_str()
            .is_some_and(|event| event.ends_with(expected)),
        "{event}"
    );
    world.until([held("1"), held("1"), held("1")]).await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_machines_nothing_is_concluded() {
    // D-27: never known is not "no machines".
    let mut world = ProberWorld::new().await;
    world.seed.faults().add(
        When::verb("list", "machines.machine.sapcloud.io"),
        Fault::status(500),
    );
    world.seed.faults().add(
        When::verb("watch", "machines.machine.sapcloud.io"),
        Fault::status(500),
    );
    world.change(CA, |object| object["spec"]["replicas"] = json!(0));
    world.start(CONFIG);
    world.nodes.cut_all();
    world.probes(8).await;
    assert_eq!(world.seed.requests().writes(), 0);
    world.seed.faults().clear();
    world.until([held("1"), held("1"), at(0)]).await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_seed_that_cannot_be_reached_at_the_start_is_tried_until_it_can() {
    let mut world = ProberWorld::new().await;
    world.seed.set_network(api_server::Network::Refused);
    world.start(CONFIG);
    tokio::time::timeout(
        Duration::from_secs(1),
        world.shoot.requests().wait_for(|all| all.front().cloned()),
    )
    .await
    .expect_err("no probe yet");
    world.seed.set_network(api_server::Network::Up);
    world.probes(2).await;
    world.end().await;
}
